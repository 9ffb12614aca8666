import Basics
import Synchronization

/// Counts the unacknowledged writes of one instance.
///
/// The server computes totals without the cache, so they would race with a write that nobody awaits: they wait until
/// the earlier writes to collections of the same id are settled. Programs therefore see their own writes, as long as
/// the server can be reached. Writes of the async forms are awaited by their callers and delay nothing. Thread-safe.
final class PendingWrites: Sendable {
    /// What pending writes affect: a document by its name, collections by their id.
    enum Place: Hashable, Sendable {
        case document(UTF8Text)
        case collection(UTF8Text)

        /// The document itself, and the collections that have the id of its parent.
        static func places(of name: String) -> [Place] {
            let utf8 = name.utf8
            guard let idSlash = utf8.lastIndex(of: UInt8(ascii: "/")) else { return [.document(UTF8Text(name))] }
            let parent = name[..<idSlash]
            let start = parent.utf8.lastIndex(of: UInt8(ascii: "/")).map { parent.utf8.index(after: $0) }
            let id = String(parent[(start ?? parent.startIndex)...])
            return [.document(UTF8Text(name)), .collection(UTF8Text(id))]
        }
    }

    private struct State {
        var count = 0
        var bytes = 0
        /// How many writes that others must wait for touch a place.
        var countOfPlace: [Place: Int] = [:]
    }

    private let state = Mutex(State())
    /// Bytes of unacknowledged writes past which new ones are refused.
    let bytesMax: Int

    init(bytesMax: Int = 256 << 20) { self.bytesMax = bytesMax }

    /// Registers a write.
    ///
    /// - Parameters:
    ///   - documents: the names of the written documents if others must wait for the write, else empty.
    ///   - byteCount: the size of the request.
    /// - Returns: false, and nothing is registered, if too much is waiting already.
    func begin(documents: [String], byteCount: Int) -> Bool {
        state.withLock { state in
            guard state.bytes == 0 || state.bytes + byteCount <= bytesMax else { return false }
            state.count += 1
            state.bytes += byteCount
            for name in documents {
                for place in Place.places(of: name) { state.countOfPlace[place, default: 0] += 1 }
            }
            return true
        }
    }

    /// A write was acknowledged or rejected. The arguments are those of `begin`.
    func finish(documents: [String], byteCount: Int) {
        state.withLock { state in
            state.count -= 1
            state.bytes -= byteCount
            for name in documents {
                for place in Place.places(of: name) {
                    guard let count = state.countOfPlace[place] else { continue }
                    state.countOfPlace[place] = count == 1 ? nil : count - 1
                }
            }
        }
    }

    /// Writes that are neither acknowledged nor rejected.
    var count: Int { state.withLock { $0.count } }

    /// Whether a total over the place has to wait now, unless the writes are those of another user.
    func hasWrites(to place: Place) -> Bool { state.withLock { $0.countOfPlace[place] != nil } }
}
