// The hot paths whose allocations are counted, and their limits.
//
// A limit is what was measured in a release build when it was written. It may only fall: a change that allocates more
// on one of these paths fails, one that allocates less lowers the limit in the same commit.

import Basics
import CAllocationCounter
import DocumentCoding
import DocumentModel
import FirestoreMessages
import Foundation

/// Something that is done again and again.
struct Subject {
    let name: String
    /// Allocations of the whole process for one operation, on average, rounded down.
    let limit: UInt64
    let operation: () throws -> Void
}

struct Book: Codable {
    struct URLs: Codable {
        var cover: String
        var preview: String
    }
    struct Tag: Codable {
        var label: String
        var color: String
    }
    var title: String
    var author: String
    var pages: Int
    var urls: URLs
    var tags: [Tag]
    var published: Date

    static let sample = Book(
        title: "The Left Hand of Darkness", author: "Ursula K. Le Guin", pages: 304,
        urls: URLs(cover: "https://books.example/c/8172.png", preview: "https://books.example/p/8172"),
        tags: [
            Tag(label: "fiction", color: "red"), Tag(label: "winter", color: "white"),
            Tag(label: "gender", color: "green"),
        ],
        published: Date(timeIntervalSince1970: -25_315_199.5))
}

enum Subjects {
    static func coding() throws -> [Subject] {
        let encoder = FirestoreEncoder()
        let decoder = FirestoreDecoder()
        let document = try encoder.documentBytes(Book.sample)
        return [
            Subject(name: "encode a book, bytes lent", limit: 0) {
                let count = try encoder.withDocumentBytes(Book.sample) { $0.byteCount }
                precondition(count == document.count)
            },
            Subject(name: "decode a book", limit: 5) {
                let book = try decoder.decode(Book.self, fromDocumentBytes: document.span.bytes)
                precondition(book.pages == 304)
            },
        ]
    }

    private static let bookName = "\(Connection.database)/documents/books/left-hand"

    /// The commit of the book with so many pages.
    private static func commit(pages: Int, _ connection: Connection) throws -> Connection.Call {
        var book = Book.sample
        book.pages = pages
        let fields = try FirestoreEncoder().documentBytes(book)
        var writes = WriteList(database: try DatabaseName(Connection.database))
        try bookName.withUTF8Span { (name) throws(RequestError) in try writes.update(name, fields: fields.span.bytes) }
        // CommitRequest: the database and the writes.
        var message = ByteBuffer()
        message.writeIfSet(1, string: Connection.database)
        writes.encode(field: 2, into: &message)
        return try connection.call(method: Method.commit.rawValue, message.copyBytes())
    }

    /// Calls over a connection, one at a time; the client allocates nothing.
    static func calls(_ connection: Connection) throws -> [Subject] {
        // In turn: a commit that changes nothing does nothing.
        let commits = try [304, 305].map { try commit(pages: $0, connection) }
        var turn = 0
        let name = bookName
        let read = try connection.call(method: 1, GetDocumentRequest(name: name).encodedBytes())
        // 500 documents that queries read.
        let numbers = "\(Connection.database)/documents/numbers"
        var many = WriteList(database: try DatabaseName(Connection.database))
        for number in 0..<500 {
            let fields = try FirestoreEncoder().documentBytes(["n": number, "rest": number % 7])
            try "\(numbers)/d\(number)".withUTF8Span { (name) throws(RequestError) in
                try many.update(name, fields: fields.span.bytes)
            }
        }
        var filling = ByteBuffer()
        filling.writeIfSet(1, string: Connection.database)
        many.encode(field: 2, into: &filling)
        _ = try connection.call(method: Method.commit.rawValue, filling.copyBytes())
        var query = StructuredQuery()
        query.from = [CollectionSelector(collectionID: "numbers")]
        query.filter = .field(try FieldPath("n"), .lessThan, EncodedValue(.integer(300)))
        let parent = "\(Connection.database)/documents"
        let sum = try connection.call(
            method: Method.runAggregationQuery.rawValue,
            RunAggregationQueryRequest(
                parent: parent,
                query: StructuredAggregationQuery(
                    query: query, aggregations: [Aggregation(.sum(try FieldPath("rest")))])
            ).encodedBytes())
        return [
            Subject(name: "GetDocument, the whole server", limit: 0) { try connection.repeat(read) },
            Subject(name: "Commit of one document, the whole server", limit: 8) {
                turn = 1 - turn
                try connection.repeat(commits[turn])
            },
            Subject(name: "Sum over 300 documents, the whole server", limit: 103) { try connection.repeat(sum) },
        ]
    }
}
