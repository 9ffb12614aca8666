internal import Basics
package import DocumentJSON
internal import DocumentModel
package import FirestoreMessages
internal import HTTPProtocols

/// The plan of an explained query or pipeline as JSON, with the two parts that the public messages do not have: the
/// tree and the advice. Documents are left out. One object for one reply.
final class ExplainReply: ReplyForm {
    let contentType = HTTPError.contentType
    let isStreaming = true
    private let path: [Int]
    private var metrics: ExplainMetrics?

    /// - Parameter path: the fields that lead to an `ExplainMetrics` in the messages of the method.
    init(path: [Int]) { self.path = path }

    /// White space stands for each message, since the plan comes last.
    func append(_ message: RawSpan, isFirst: Bool, to body: inout ByteBuffer) throws(RequestError) {
        do throws(InvalidDocument) {
            try read(message, path[...])
        } catch {
            throw RequestError(.internal, "The plan cannot be read: \(error.message)")
        }
        body.append(utf8: "\n")
    }

    private func read(_ message: RawSpan, _ path: ArraySlice<Int>) throws(InvalidDocument) {
        guard let field = path.first else {
            metrics = try ExplainMetrics(wire: message)
            return
        }
        var reader = WireReader(message)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == field {
                try read(try reader.span(tag), path.dropFirst())
            } else {
                try reader.skip(tag)
            }
        }
    }

    func appendEnd(isFirst: Bool, to body: inout ByteBuffer) {
        body.append(utf8: (metrics?.object ?? .object([:])).json)
    }

    func appendError(_ error: RequestError, isFirst: Bool, to body: inout ByteBuffer) {
        HTTPError.append(HTTPStatus(error.code), "\(error.code)", error.message, to: &body)
    }
}

extension ExplainMetrics {
    /// An object with the tree, the indexes and the advice; after an execution also with what it did.
    package var object: JSONValue {
        var members: [String: JSONValue] = [
            "tree": .string(tree), "advice": .string(advice),
            "indexes": .array(indexes.map { .string("\($0.queryScope) \($0.properties)") }),
        ]
        guard let execution else { return .object(members) }
        members["resultsReturned"] = .integer(execution.resultsReturned)
        members["durationNanoseconds"] = .integer(execution.durationNanoseconds)
        members["documentsScanned"] = .integer(execution.documentsScanned)
        members["indexEntriesScanned"] = .integer(execution.indexEntriesScanned)
        members["operators"] = .array(
            zip(execution.operators, execution.ownNanoseconds).map { one, own in
                .object([
                    "depth": .integer(one.depth), "line": .string(one.line), "rows": .integer(one.rows),
                    "entries": .integer(one.entries), "nanoseconds": .integer(one.nanoseconds),
                    "ownNanoseconds": .integer(own),
                ])
            })
        return .object(members)
    }
}
