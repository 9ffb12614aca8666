import Basics
import DocumentModel
import FirestoreJSON
import FirestoreMessages

/// What a call is about, for the log: the documents by their paths, or the query as JSON. Only made for lines that are
/// written.
enum CallSubject {
    /// The most documents that a line names.
    private static let namesMax = 3
    /// The most characters of a query.
    private static let queryLengthMax = 1000

    /// - Returns: empty where the request names neither, or cannot be read.
    static func text(_ method: Method, _ request: [UInt8]) -> String {
        let wire = request.byteSpan
        switch method {
        case .getDocument: return (try? GetDocumentRequest(wire: wire)).map { text(of: [$0.name]) } ?? ""
        case .batchGetDocuments:
            return (try? BatchGetDocumentsRequest(wire: wire)).map { text(of: $0.documents) } ?? ""
        case .commit: return text(of: writtenNames(wire))
        case .runQuery: return (try? RunQueryRequest(wire: wire)).map { text(of: $0.query, below: $0.parent) } ?? ""
        case .runAggregationQuery:
            guard let request = try? RunAggregationQueryRequest(wire: wire) else { return "" }
            return text(of: request.query?.query, below: request.parent)
        case .listen: return (try? ListenRequest(wire: wire)).map { text(of: $0) } ?? ""
        default: return ""
        }
    }

    /// What a request of a Listen stream is about.
    static func text(of request: ListenRequest) -> String {
        switch request.change {
        case .remove(let id): return "target \(id) ends"
        case .add(let target):
            switch target.kind {
            case .documents(let names): return "target \(target.id), \(text(of: names))"
            case .query(let parent, let query): return "target \(target.id), \(text(of: query, below: parent))"
            case .invalidQuery, .pipeline, nil: return "target \(target.id)"
            }
        case nil: return ""
        }
    }

    private static func text(of names: [String]) -> String {
        let shown = names.prefix(namesMax).map(path).joined(separator: ", ")
        return names.count > namesMax ? "\(shown) and \(names.count - namesMax) others" : shown
    }

    private static func text(of query: StructuredQuery?, below parent: String) -> String {
        guard let query else { return "" }
        var message = ByteBuffer(capacity: 256)
        query.encode(into: &message)
        var json = ByteBuffer(capacity: 512)
        let type = Schema.shared.message("google.firestore.v1.StructuredQuery")
        guard (try? JSONMessageWriter().append(message.bytes, type, to: &json)) != nil else { return "" }
        let text = String(repairingUTF8: json.bytes).prefix(queryLengthMax)
        let place = path(parent)
        return place.isEmpty ? "query \(text)" : "query \(text) below \(place)"
    }

    /// The path of a document's resource name; empty for the documents root.
    private static func path(_ name: String) -> String {
        let parts = name.split(separator: "/", maxSplits: 5)
        guard parts.count >= 5, parts[0] == "projects", parts[4] == "documents" else { return name }
        return parts.count == 6 ? String(parts[5]) : ""
    }

    /// The documents of a commit's writes.
    private static func writtenNames(_ request: RawSpan) -> [String] {
        var names: [String] = []
        try? CommitRequestView(request).forEachWrite { write in
            var reader = WireReader(write)
            while let tag = try reader.nextTag() {
                switch tag.fieldNumber {
                case FieldNumber.Write.delete, FieldNumber.Write.verify: names.append(try reader.string(tag))
                case FieldNumber.Write.update:
                    var document = WireReader(try reader.span(tag))
                    while let tag = try document.nextTag() {
                        if tag.fieldNumber == FieldNumber.Document.name {
                            names.append(try document.string(tag))
                        } else {
                            try document.skip(tag)
                        }
                    }
                default: try reader.skip(tag)
                }
            }
        }
        return names
    }
}
