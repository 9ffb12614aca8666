import Basics
import DocumentModel
import FirestoreMessages

/// What a Listen stream reports of one target.
enum WatchEvent: Sendable {
    /// What has changed since the last snapshot: documents by their names, `nil` for those that are gone. The first
    /// snapshot of a target may be empty.
    case snapshot([String: StoredDocument?])
    /// The server has removed the target.
    case failure(RequestError)
}

/// The client's state of a Listen stream: messages in, events and requests out. Without I/O.
///
/// Changes are collected until the server reports that the stream is consistent (a global NO_CHANGE). Each target that
/// has changed then has one event. After a reconnect every target continues from its last snapshot.
struct WatchState {
    fileprivate struct Target {
        let kind: ListenTarget.Kind
        /// Documents as of the last snapshot.
        var documents: [String: StoredDocument] = [:]
        /// Changes since then.
        var changes: [String: StoredDocument?] = [:]
        /// The server has discarded what it sent before.
        var isReset = false
        /// The server has sent everything there is.
        var isCurrent = false
        /// An event has been reported.
        var hasSnapshot = false
        /// The token of the last snapshot; `nil` before the first.
        var token: [UInt8]?
    }

    /// What a message leads to.
    struct Step {
        var events: [(target: Int32, event: WatchEvent)] = []
        /// Requests to send.
        var requests: [ListenRequest] = []
        /// Whether this was a consistent snapshot of all targets.
        var isConsistent = false
    }

    private let database: String
    private var targets: [Int32: Target] = [:]

    init(database: String) { self.database = database }

    var isEmpty: Bool { targets.isEmpty }

    // MARK: Requests

    /// Adds a target. Ids are never used again.
    /// - Returns: the request for an open stream.
    mutating func add(_ id: Int32, _ kind: ListenTarget.Kind) -> ListenRequest {
        let target = Target(kind: kind)
        targets[id] = target
        return request(id, target)
    }

    /// Removes a target.
    /// - Returns: the request for an open stream; `nil` if there is no such target.
    mutating func remove(_ id: Int32) -> ListenRequest? {
        targets.removeValue(forKey: id).map { _ in ListenRequest(database: database, .remove(id)) }
    }

    /// A new stream: forgets what came after the last snapshot.
    /// - Returns: the requests to begin with, one for each target.
    mutating func reconnect() -> [ListenRequest] {
        targets.keys.sorted().compactMap { id in
            guard var target = targets[id] else { return nil }
            target.changes = [:]
            target.isReset = false
            target.isCurrent = false
            targets[id] = target
            return request(id, target)
        }
    }

    private func request(_ id: Int32, _ target: Target) -> ListenRequest {
        ListenRequest(
            database: database, .add(ListenTarget(target.kind, id: id, resume: target.token.map { .token($0) })))
    }

    // MARK: Responses

    /// Takes a message of the server.
    /// - Throws: if a document in it cannot be read.
    mutating func receive(_ response: ListenResponse) throws -> Step {
        var step = Step()
        switch response {
        case .targetChange(let change): apply(change, &step)
        case .documentChange(let change):
            let document = try NamedDocument(message: change.document.span.bytes)
            for id in change.targets { set(document.name, document.content, in: id) }
            for id in change.removedTargets { set(document.name, nil, in: id) }
        case .documentDelete(let removal), .documentRemove(let removal):
            for id in all(removal.removedTargets) { set(removal.name, nil, in: id) }
        case .filter(let filter): check(filter, &step)
        case .unknown: break
        }
        return step
    }

    private mutating func set(_ name: String, _ document: StoredDocument?, in id: Int32) {
        targets[id]?.changes[name] = .some(document)
    }

    private mutating func apply(_ change: ListenResponse.TargetChange, _ step: inout Step) {
        switch change.kind {
        case .add: break
        case .current:
            for id in all(change.targets) { targets[id]?.isCurrent = true }
        case .reset:
            for id in all(change.targets) { reset(id) }
        case .remove:
            // A target that this client has removed is not among the targets any more.
            let cause = change.cause.map { RequestError($0.code, $0.message) }
            for id in all(change.targets) where targets.removeValue(forKey: id) != nil {
                step.events.append((id, .failure(cause ?? Self.removedWithoutCause)))
            }
        case .noChange:
            guard change.targets.isEmpty, change.readTime != nil else { return }
            step.isConsistent = true
            for id in targets.keys.sorted() {
                if let event = takeSnapshot(of: id, change.resumeToken) { step.events.append((id, event)) }
            }
        }
    }

    private static let removedWithoutCause = RequestError(.internal, "The server removed the target without a cause.")

    /// The targets that a message is about: an empty list stands for all.
    private func all(_ ids: [Int32]) -> [Int32] { ids.isEmpty ? Array(targets.keys) : ids }

    private mutating func reset(_ id: Int32) {
        targets[id]?.isReset = true
        targets[id]?.isCurrent = false
        targets[id]?.changes = [:]
    }

    /// The number of documents does not agree with the server's: the target is listed again from the start.
    private mutating func check(_ filter: ListenResponse.ExistenceFilter, _ step: inout Step) {
        guard var target = targets[filter.target], target.count != Int(filter.count) else { return }
        target.token = nil
        targets[filter.target] = target
        reset(filter.target)
        step.requests = [ListenRequest(database: database, .remove(filter.target)), request(filter.target, target)]
    }

    /// The event of a target at a consistent snapshot; `nil` if nothing has changed.
    private mutating func takeSnapshot(of id: Int32, _ token: [UInt8]) -> WatchEvent? {
        guard var target = targets[id], target.isCurrent else { return nil }
        let changes = target.takeChanges()
        target.token = token
        defer { targets[id] = target }
        if changes.isEmpty, target.hasSnapshot { return nil }
        target.hasSnapshot = true
        return .snapshot(changes)
    }
}

extension WatchState.Target {
    /// The number of documents, changes since the last snapshot included.
    fileprivate var count: Int {
        var names = isReset ? [] : Set(documents.keys)
        for (name, document) in changes {
            if document == nil { names.remove(name) } else { names.insert(name) }
        }
        return names.count
    }

    /// Makes the changes part of the documents.
    /// - Returns: those that are none against the last snapshot left out.
    fileprivate mutating func takeChanges() -> [String: StoredDocument?] {
        if isReset {
            for name in documents.keys where changes[name] == nil { changes[name] = .some(nil) }
        }
        let effective = changes.filter { name, document in documents[name]?.updateTime != document?.updateTime }
        for (name, document) in effective { documents[name] = document }
        changes = [:]
        isReset = false
        return effective
    }
}
