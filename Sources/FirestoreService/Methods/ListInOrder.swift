// ListDocuments with `order_by`: a query in disguise, whose page tokens are its cursors.

package import Basics
internal import Calls
package import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import QueryEngine

extension FirestoreService {
    func listInOrder(
        _ message: ListDocumentsRequest, after token: PageToken?, at point: ReadPoint, _ page: inout ListingPage,
        _ writer: inout ByteBuffer
    ) throws {
        var query = try message.query()
        let orders = query.orderBy
        if let token {
            query.startAt = Cursor(values: try values(of: orders, message, after: token, in: point), before: false)
        }
        // One more than fits shows whether there is another page.
        query.limit = Int32(clamping: page.limit + 1)
        let plan = try message.parent.withUTF8Span { (parent) throws(RequestError) in
            try QueryPlan(query, parent: parent)
        }
        let namePrefix = "\(plan.database.documentsRoot)/"
        var run = QueryExecution(plan)
        let selection = message.mask?.selection
        var (lastName, lastValues): ([UInt8], [EncodedValue]) = ([], [])
        while true {
            let source = try reader.source(at: point, matching: plan.matcher, coldRead)
            let progress = try run.next(from: source) { (result) throws(RequestError) in
                guard page.hasRoom(writer.count) else {
                    page.nextToken = Self.token(message, after: lastName, lastValues, at: point)
                    return .full
                }
                page.count += 1
                page.documents += 1
                let name = Array(namePrefix.utf8) + [UInt8](copying: result.path)
                (lastName, lastValues) = (name, OrderText.values(of: orders, name: name, fields: result.fields))
                try withSelectedFields(result.fields, selection) { fields in
                    ListDocumentsResponseWriter.appendDocument(
                        name: name.span.bytes, fields: fields, createMicroseconds: result.createMicroseconds,
                        updateMicroseconds: result.updateMicroseconds, to: &writer)
                }
                return .more
            }
            if page.nextToken != nil { return }
            if case .finished = progress { return }
        }
    }

    /// Bytes of a cursor that a token may have.
    private static var cursorBytesMax: Int { 1_024 }

    /// The token of the page after a document.
    private static func token(
        _ message: ListDocumentsRequest, after name: [UInt8], _ values: [EncodedValue], at point: ReadPoint
    ) -> PageToken {
        let cursor = Cursor(values: values, before: false)
        var encoded = ByteBuffer()
        cursor.encode(into: &encoded)
        let ids = name.dropFirst(message.parent.utf8.count + 1)
        guard encoded.count > cursorBytesMax, let slash = ids.firstIndex(of: UInt8(ascii: "/")) else {
            return .cursor(cursor)
        }
        return .ordered(
            version: point.readMicroseconds, collectionID: Array(ids[..<slash]), documentID: Array(ids[(slash + 1)...]))
    }

    /// The values by which the last document of the page before was ordered.
    private func values(
        of orders: [Order], _ message: ListDocumentsRequest, after token: PageToken, in point: ReadPoint
    ) throws(RequestError) -> [EncodedValue] {
        switch token {
        case .cursor(let cursor): return cursor.values
        case .ordered(let version, let collectionID, let documentID):
            // A document that the listing could have given out, and no other: a caller who may list this collection
            // learns something of its values.
            let slash = RelativePath.slash
            guard message.collectionID.isEmpty || collectionID == Array(message.collectionID.utf8),
                !collectionID.contains(slash), !documentID.contains(slash)
            else { throw .invalidArgument("The page token belongs to another listing.") }
            let name = Array(message.parent.utf8) + [slash] + collectionID + [slash] + documentID
            let time = TimestampValue(microseconds: Int64(clamping: version))
            let before = try reader.readPoint(.time(time), in: point.database)
            var values: [EncodedValue] = []
            try reader.withDocument(name.byteSpan, at: before, coldRead) { found in
                if let found { values = OrderText.values(of: orders, name: name, fields: found.fields) }
            }
            if values.isEmpty { throw .invalidArgument("The page token is not valid.") }
            return values
        case .document, .collection:
            throw .invalidArgument("The page token belongs to another listing.")
        }
    }
}

extension ListDocumentsRequest {
    /// The query that lists the same documents, without the position of a page.
    func query() throws(RequestError) -> StructuredQuery {
        StructuredQuery(
            from: [CollectionSelector(collectionID: collectionID)],
            orderBy: orderBy.isEmpty ? [] : try OrderText.parse(orderBy), limit: pageSize > 0 ? pageSize : nil)
    }
}

/// The `order_by` text of listings: `a desc, b.c, __name__`.
package enum OrderText {
    /// Reads the text; the order always ends with the name, in the direction of the last field before it.
    package static func parse(_ text: String) throws(RequestError) -> [Order] {
        var orders: [Order] = []
        for part in split(text) {
            orders.append(try order(part))
        }
        if !orders.contains(where: { $0.field.isDocumentName }) {
            orders.append(Order(field: .documentName, direction: orders.last?.direction ?? .ascending))
        }
        return orders
    }

    /// Reads `FIELD`, `FIELD asc` or `FIELD desc`.
    private static func order(_ part: String) throws(RequestError) -> Order {
        var name = trimmed(part.unicodeScalars[...])
        var direction = SortDirection.ascending
        if let space = name.lastIndex(of: " ") {
            let word = String(name[space...].dropFirst()).lowercased()
            if word == "asc" || word == "desc" {
                direction = word == "asc" ? .ascending : .descending
                name = trimmed(name[..<space])
            }
        }
        if name.isEmpty { throw .invalidArgument("An order in order_by is empty.") }
        return Order(field: try FieldPath(String(name)), direction: direction)
    }

    private static func trimmed(_ text: Substring.UnicodeScalarView) -> Substring.UnicodeScalarView {
        var text = text.drop { $0 == " " }
        while text.last == " " { text.removeLast() }
        return text
    }

    /// The parts between commas that are not within backticks.
    package static func split(_ text: String) -> [String] {
        var parts = [""]
        var quotes = BackquoteScanner()
        for scalar in text.unicodeScalars {
            if !quotes.covers(scalar), scalar == "," {
                parts.append("")
            } else {
                parts[parts.count - 1].unicodeScalars.append(scalar)
            }
        }
        return parts
    }

    /// The values by which a document is ordered: the values of its cursor.
    static func values(of orders: [Order], name: [UInt8], fields: RawSpan) -> [EncodedValue] {
        orders.map { order in
            if order.field.isDocumentName {
                return EncodedValue(.reference(String(decoding: name, as: UTF8.self)))
            }
            // A result has every field it is ordered by.
            guard let value = DocumentBytes.value(at: order.field, in: fields) else { return EncodedValue(.null) }
            return EncodedValue(canonical: [UInt8](copying: value))
        }
    }
}
