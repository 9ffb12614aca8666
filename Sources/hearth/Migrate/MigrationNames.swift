// Names and references of the source as those of the target.

import Basics
import DocumentModel

/// How documents of the source become documents of the target.
struct MigrationNames: Sendable {
    let source: DatabaseName
    let target: DatabaseName
    /// Whether references to documents of the source name those of the target.
    let mapsReferences: Bool

    /// The name at the target.
    ///
    /// - Throws: if the source sent a document of another database.
    func target(_ name: String) throws -> String { "\(target.documentsRoot)/\(try path(name))" }

    /// The path below the documents root of the source.
    func path(_ name: String) throws -> String {
        let root = source.documentsRoot + "/"
        guard name.hasUTF8Prefix(root) else {
            throw CommandFailure("the source sent \(name), which is not in \(source)")
        }
        return name.dropping(prefix: root)
    }

    /// Document bytes for the target.
    func fields(_ bytes: [UInt8]) throws -> [UInt8] {
        guard mapsReferences else { return bytes }
        let map = try MapValue(documentBytes: bytes.byteSpan)
        return MapValue(map.entries.map { ($0.key, mapped($0.value)) }).documentBytes
    }

    private func mapped(_ value: Value) -> Value {
        switch value {
        case .reference(let name):
            let root = source.documentsRoot + "/"
            if !name.hasUTF8Prefix(root) { return value }
            return .reference("\(target.documentsRoot)/\(name.dropping(prefix: root))")
        case .array(let elements): return .array(elements.map(mapped))
        case .map(let map): return .map(MapValue(map.entries.map { ($0.key, mapped($0.value)) }))
        default: return value
        }
    }

    /// The collections of a document's path with `*` for ids, as reports show them, and the last one's id.
    static func collection(of path: String) -> (pattern: String, group: String) {
        let ids = path.slashSeparated.enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element)
        return (ids.joined(separator: "/*/"), ids.last ?? "")
    }
}
