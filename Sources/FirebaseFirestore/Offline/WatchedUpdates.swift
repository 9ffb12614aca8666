import Basics
import ClientCache
import DocumentModel
import HearthClient

/// What one step of a Listen stream changes in the store: its targets, and documents in the newest state that the step
/// has of them.
///
/// Targets have a document in different states: one that the document has left, as it was when it left; one that the
/// document is in, as it is at the time of the step.
///
///     target 1    found, version 7    ─┐
///     target 2    left, version 5     ─┴─►  found, version 7
struct WatchedUpdates {
    private(set) var documents: [UTF8Text: RemoteUpdate] = [:]
    private(set) var targets: [TargetUpdate] = []

    /// Adds the snapshot of a target.
    ///
    /// - Parameter target: the number of the target in the store.
    /// - Returns: what changes for the target.
    mutating func add(_ snapshot: WatchedSnapshot, of target: UInt32) -> TargetUpdate {
        let read = UInt64(clamping: snapshot.readTime.microseconds)
        var update = TargetUpdate(id: target, token: snapshot.token, snapshotMicroseconds: read)
        for (name, change) in snapshot.changes {
            switch change {
            case .found(let document):
                update.added.append(name.string)
                add(name, document.remoteContent, readMicroseconds: read)
            case .left(let document):
                update.removed.append(name.string)
                // It may have changed since, and that is not sent to this target.
                if let document { add(name, document.remoteContent) }
            case .deleted(let time):
                update.removed.append(name.string)
                add(name, .missing(readMicroseconds: time.map { UInt64(clamping: $0.microseconds) }))
            }
        }
        for document in snapshot.confirmed {
            add(UTF8Text(document.name), document.content.remoteContent, readMicroseconds: read)
        }
        targets.append(update)
        return update
    }

    private mutating func add(
        _ name: UTF8Text, _ content: RemoteUpdate.Content, readMicroseconds: UInt64? = nil
    ) {
        let update = RemoteUpdate(name: name.string, content: content, readMicroseconds: readMicroseconds)
        if let known = documents[name], !known.isBefore(update) { return }
        documents[name] = update
    }
}

extension RemoteUpdate {
    /// Whether another state of the document is later, or says the same for a known time.
    fileprivate func isBefore(_ other: RemoteUpdate) -> Bool {
        if stateMicroseconds != other.stateMicroseconds { return stateMicroseconds < other.stateMicroseconds }
        return readMicroseconds == nil && other.readMicroseconds != nil
    }

    /// The time of the state in microseconds; 0 if it is not known.
    private var stateMicroseconds: UInt64 {
        switch content {
        case .found(_, _, let updated): updated
        case .missing(let read): read ?? 0
        }
    }
}
