internal import Basics
internal import Synchronization

/// The bytes that all open transactions hold together: what they have read and the writes that they keep. Thread-safe.
final class TransactionMemory: Sendable {
    private let used = Atomic<Int>(0)
    private let bytesMax: Int

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    var bytes: Int { used.load(ordering: .relaxed) }

    /// Takes bytes for a transaction.
    /// - Throws: `RESOURCE_EXHAUSTED` if all of them would hold too much; nothing is taken then.
    func take(_ bytes: Int) throws(RequestError) {
        guard used.add(bytes, ordering: .relaxed).newValue > bytesMax else { return }
        giveBack(bytes)
        throw RequestError(
            .resourceExhausted,
            "The open transactions hold more than \(bytesMax) bytes: commit transactions or roll them back.")
    }

    func giveBack(_ bytes: Int) { used.subtract(bytes, ordering: .relaxed) }
}
