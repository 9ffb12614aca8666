import Basics
import ClientCache
import DocumentJSON
import DocumentModel
import FirestoreJSON
import FirestoreMessages
import Foundation
internal import QueryEngine

/// One element of a bundle.
enum BundleElement {
    /// The first element: what the bundle contains.
    struct Metadata: Equatable {
        var id: String
        var createMicroseconds: UInt64
        var documentCount: Int
        /// Bytes of the elements after this one.
        var byteCount: Int
    }

    /// Comes before each document, and alone for a document that does not exist.
    struct DocumentMetadata: Equatable {
        var name: String
        var readMicroseconds: UInt64
        var exists: Bool
        /// The names of the bundle's queries that have the document in their results.
        var queries: [String]
    }

    struct Document: Equatable {
        var name: String
        /// Canonical field entries.
        var fields: [UInt8]
        var createMicroseconds: UInt64
        var updateMicroseconds: UInt64
    }

    case metadata(Metadata)
    case namedQuery(LocalNamedQuery)
    case documentMetadata(DocumentMetadata)
    case document(Document)
}

/// Reads the elements of bundles for one database.
struct BundleElementReader: ~Copyable {
    private let database: DatabaseName
    private var reader = JSONMessageReader()
    private static let documentType = Schema.shared.message("google.firestore.v1.Document")
    private static let queryType = Schema.shared.message("google.firestore.v1.StructuredQuery")

    init(database: DatabaseName) {
        self.database = database
        reader.acceptsMessageForms = true
    }

    /// - Parameter json: the text of an element: an object with one member.
    /// - Throws: DATA_LOSS for other text, INVALID_ARGUMENT for an element that breaks a rule of the database.
    mutating func read(_ json: [UInt8]) throws(RequestError) -> BundleElement {
        let (key, range) = try Self.member(json)
        switch key {
        case "metadata": return .metadata(try metadata(json, range))
        case "namedQuery": return .namedQuery(try namedQuery(json, range))
        case "documentMetadata": return .documentMetadata(try documentMetadata(json, range))
        case "document": return .document(try document(json, range))
        default: throw RequestError.damagedBundle("an element of the unknown kind '\(key.prefix(100))'")
        }
    }

    /// The name and the extent of the value of an object's only member.
    private static func member(_ json: [UInt8]) throws(RequestError) -> (String, Range<Int>) {
        do throws(JSONLineError) {
            var scanner = JSONScanner(json.span)
            try scanner.expect(UInt8(ascii: "{"))
            scanner.skipSpace()
            let key = try scanner.string()
            try scanner.expect(UInt8(ascii: ":"))
            var end = json.count - 1
            while end > scanner.position, isSpace(json[end]) { end -= 1 }
            guard end >= scanner.position, json[end] == UInt8(ascii: "}") else {
                throw JSONLineError("the object does not end", at: json.count)
            }
            return (String(decoding: json[key.start..<key.end], as: UTF8.self), scanner.position..<end)
        } catch {
            throw RequestError.damagedBundle("\(error.reason) (byte \(error.offset) of an element)")
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A
    }

    // MARK: Small elements

    private func object(_ json: [UInt8], _ range: Range<Int>, _ what: String) throws(RequestError) -> [String: Any] {
        guard let object = try? JSONSerialization.jsonObject(with: Data(json[range])) as? [String: Any] else {
            throw RequestError.damagedBundle("\(what) is not a JSON object")
        }
        return object
    }

    private func metadata(_ json: [UInt8], _ range: Range<Int>) throws(RequestError) -> BundleElement.Metadata {
        let object = try object(json, range, "the metadata")
        guard let id = object["id"] as? String, !id.isEmpty else { throw RequestError.damagedBundle("it has no id") }
        return BundleElement.Metadata(
            id: id, createMicroseconds: try Self.time(object["createTime"], "createTime"),
            documentCount: Int(try Self.count(object["totalDocuments"], "totalDocuments")),
            byteCount: Int(try Self.count(object["totalBytes"], "totalBytes")))
    }

    private func documentMetadata(
        _ json: [UInt8], _ range: Range<Int>
    ) throws(RequestError) -> BundleElement.DocumentMetadata {
        let object = try object(json, range, "the metadata of a document")
        let name = try documentName(object["name"] as? String)
        return BundleElement.DocumentMetadata(
            name: name, readMicroseconds: try Self.time(object["readTime"], "readTime"),
            exists: object["exists"] as? Bool ?? false, queries: object["queries"] as? [String] ?? [])
    }

    /// Microseconds since 1970 of a time as text or as `{seconds, nanos}`.
    private static func time(_ value: Any?, _ name: String) throws(RequestError) -> UInt64 {
        if let text = value as? String, let time = RFC3339.timestamp(Array(text.utf8).span) {
            return UInt64(clamping: time.microseconds)
        }
        if let object = value as? [String: Any] {
            let seconds = try integer(object["seconds"] ?? 0, name)
            let nanoseconds = try integer(object["nanos"] ?? 0, name)
            // The years 1970 to 9999.
            if 0..<253_402_300_800 ~= seconds, 0..<1_000_000_000 ~= nanoseconds {
                return UInt64(seconds) * 1_000_000 + UInt64(nanoseconds) / 1000
            }
        }
        throw RequestError.damagedBundle("\(name) is not a time")
    }

    private static func count(_ value: Any?, _ name: String) throws(RequestError) -> Int64 {
        let count = try integer(value ?? 0, name)
        guard count >= 0 else { throw RequestError.damagedBundle("\(name) is negative") }
        return count
    }

    private static func integer(_ value: Any, _ name: String) throws(RequestError) -> Int64 {
        if let number = value as? NSNumber, let whole = Int64(exactly: number.doubleValue) { return whole }
        if let text = value as? String, let whole = Int64(text) { return whole }
        throw RequestError.damagedBundle("\(name) is not an integer")
    }

    private func documentName(_ name: String?) throws(RequestError) -> String {
        guard let name else { throw RequestError.damagedBundle("a document has no name") }
        let root = "\(database.documentsRoot)/"
        guard name.hasUTF8Prefix(root) else {
            throw .invalidArgument(
                "The bundle belongs to another database: '\(name.prefix(200))' is not in \(database).")
        }
        do throws(RequestError) {
            _ = try DocumentPath(name)
        } catch {
            throw .invalidArgument("The bundle has an invalid document name: '\(name.prefix(200))'.")
        }
        return name
    }

    // MARK: Documents and queries

    private mutating func document(
        _ json: [UInt8], _ range: Range<Int>
    ) throws(RequestError) -> BundleElement.Document {
        var wire = ByteBuffer(capacity: range.count)
        try reader.append(json.byteSpan.extracting(range), Self.documentType, to: &wire)
        do {
            let message = try DocumentMessage(wire: wire.bytes)
            var fields = ByteBuffer(capacity: message.fields.count)
            try DocumentCanonicalizer.canonicalize(fields: message.fields.byteSpan, into: &fields)
            guard fields.count <= Limits.documentBytes * 2 else { throw InvalidDocument(.documentTooLarge, offset: 0) }
            guard let updated = message.updateTime else {
                throw RequestError.damagedBundle("a document has no updateTime")
            }
            return BundleElement.Document(
                name: try documentName(message.name), fields: fields.copyBytes(),
                createMicroseconds: UInt64(clamping: (message.createTime ?? updated).microseconds),
                updateMicroseconds: UInt64(clamping: updated.microseconds))
        } catch let error as RequestError {
            throw error
        } catch {
            throw .invalidArgument("The bundle has an invalid document: \(error)")
        }
    }

    private mutating func namedQuery(_ json: [UInt8], _ range: Range<Int>) throws(RequestError) -> LocalNamedQuery {
        let object = try object(json, range, "a named query")
        guard let name = object["name"] as? String, !name.isEmpty else {
            throw RequestError.damagedBundle("a query has no name")
        }
        guard let bundled = object["bundledQuery"] as? [String: Any], let parent = bundled["parent"] as? String,
            let structured = bundled["structuredQuery"] as? [String: Any],
            let text = try? JSONSerialization.data(withJSONObject: structured)
        else { throw RequestError.damagedBundle("the query '\(name.prefix(100))' is not complete") }
        var wire = ByteBuffer(capacity: text.count)
        try reader.append(Array(text).byteSpan, Self.queryType, to: &wire)
        let query = BundledQuery(
            parent: parent, query: try StructuredQuery(wire: wire.bytes),
            keepsLast: bundled["limitType"] as? String == "LAST")
        // Whatever is wrong with the query is reported now.
        _ = try query.description(in: database)
        return LocalNamedQuery(
            name: name, readMicroseconds: try Self.time(object["readTime"], "readTime"), contents: query.encoded())
    }
}
