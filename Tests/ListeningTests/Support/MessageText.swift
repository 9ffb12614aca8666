import DocumentModel
import FirestoreMessages

extension ListenHarness {
    /// A message in words.
    func text(_ message: ListenResponse) throws -> String {
        func path(_ name: String) -> String { String(name.dropFirst(self.name("").count)) }
        switch message {
        case .targetChange(let change):
            let cause = change.cause.map { " \($0.code): \($0.message)" } ?? ""
            return "\(change.kind) \(change.targets)\(cause)"
        case .documentChange(let change):
            let document = try DocumentMessage(wire: change.document.byteSpan)
            let removed = change.removedTargets.isEmpty ? "" : " removed \(change.removedTargets)"
            return "change \(path(document.name)) \(change.targets)\(removed)"
        case .documentDelete(let removal): return "delete \(path(removal.name)) \(removal.removedTargets)"
        case .documentRemove(let removal): return "remove \(path(removal.name)) \(removal.removedTargets)"
        case .filter(let filter):
            return "filter \(filter.target) \(filter.count) \(filter.unchangedNames == nil ? "" : "with names")"
        case .unknown: return "unknown"
        }
    }
}
