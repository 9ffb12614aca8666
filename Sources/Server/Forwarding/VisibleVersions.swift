// Replies at a follower that wait until what they say is visible here.
//
//     reply, reply, reply of one group ──► one wait of the store ──► visible ──► all three are sent

internal import Basics
internal import DocumentStore
internal import EventLoops
internal import FirestoreService

/// The waits of one loop for versions of a store. Confined to the loop.
final class VisibleVersions {
    typealias Completion = (Result<Void, RequestError>) -> Void

    private let store: DocumentStore
    private let loop: EventLoop
    private var waiting: [UInt64: [Completion]] = [:]
    /// Everything up to this version is visible.
    private(set) var through: UInt64 = 0

    init(_ store: DocumentStore, on loop: EventLoop) {
        self.store = store
        self.loop = loop
    }

    /// Calls back when a version is visible, in a later turn of the loop; or when the store gives up.
    /// - Parameter version: above ``through``.
    func when(_ version: UInt64, _ completion: @escaping Completion) {
        let isFirst = waiting[version] == nil
        waiting[version, default: []].append(completion)
        guard isFirst else { return }
        let bound = LoopBound(self)
        store.whenVisible(version) { [loop] outcome in
            loop.execute { bound.value.ended(version, outcome) }
        }
    }

    private func ended(_ version: UInt64, _ outcome: Result<Void, RequestError>) {
        if case .success = outcome { through = max(through, version) }
        for completion in waiting.removeValue(forKey: version) ?? [] { completion(outcome) }
    }
}
