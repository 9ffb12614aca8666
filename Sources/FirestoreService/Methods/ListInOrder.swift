// ListDocuments with `order_by`: a query in disguise, whose page tokens are its cursors.

package import Basics
internal import Calls
package import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import QueryEngine

/// A page by an order.
final class OrderListing: Listing {
    private let orders: [Order]
    private var run: QueryExecution
    /// Of the last document.
    private var lastName: [UInt8] = []
    private var lastValues: [EncodedValue] = []

    /// Bytes of a cursor that a token may have.
    private static let cursorBytesMax = 1_024

    init(
        _ service: FirestoreService, _ call: Call, _ message: ListDocumentsRequest, at point: ReadPoint,
        after token: PageToken?
    ) throws(RequestError) {
        let page = ListingPage(of: message, service.limits)
        var query = try message.query()
        orders = query.orderBy
        if let token {
            let values = try Self.values(of: orders, message, after: token, in: point, service)
            query.startAt = Cursor(values: values, before: false)
        }
        // One more than fits shows whether there is another page.
        query.limit = Int32(clamping: page.limit + 1)
        let whole = query
        run = QueryExecution(
            try message.parent.withUTF8Span { (parent) throws(RequestError) in try QueryPlan(whole, parent: parent) })
        super.init(service, call, message, at: point, page)
    }

    /// Looks for results until the page is complete.
    func findMore() throws(RequestError) {
        do throws(RequestError) {
            let source = try service.reader.source(at: point, matching: run.plan.matcher, .pends)
            let progress = try run.next(from: source) { (result) throws(RequestError) in try append(result) }
            if page.nextToken == nil, case .paused = progress {
                return service.continueLater(call) { _ in try self.findMore() }
            }
        } catch {
            guard error.isPending else { throw error }
            // The results before are on the page.
            return service.repeatWhenReady(call) { _ in try self.findMore() }
        }
        send()
    }

    private func append(_ result: borrowing QueryRow) throws(RequestError) -> PageControl {
        guard page.hasRoom(after: documents.count) else {
            page.nextToken = token
            return .full
        }
        page.count += 1
        page.documents += 1
        lastName = Array("\(point.database.documentsRoot)/".utf8) + [UInt8](copying: result.path)
        lastValues = OrderText.values(of: orders, name: lastName, fields: result.fields)
        let name = lastName
        try service.withSelectedFields(result.fields, message.mask?.selection) { fields in
            ListDocumentsResponseWriter.appendDocument(
                name: name.byteSpan, fields: fields, createMicroseconds: result.createMicroseconds,
                updateMicroseconds: result.updateMicroseconds, to: &documents)
        }
        return .more
    }

    // MARK: Tokens

    /// The token of the page after the last document.
    private var token: PageToken {
        let cursor = Cursor(values: lastValues, before: false)
        var encoded = ByteBuffer()
        cursor.encode(into: &encoded)
        let ids = lastName.dropFirst(message.parent.utf8.count + 1)
        guard encoded.count > Self.cursorBytesMax, let slash = ids.firstIndex(of: RelativePath.slash) else {
            return .cursor(cursor)
        }
        return .ordered(
            version: point.readMicroseconds, collectionID: Array(ids[..<slash]), documentID: Array(ids[(slash + 1)...]))
    }

    /// The values by which the last document of the page before was ordered.
    private static func values(
        of orders: [Order], _ message: ListDocumentsRequest, after token: PageToken, in point: ReadPoint,
        _ service: FirestoreService
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
            let before = try service.reader.readPoint(.time(time), in: point.database)
            var values: [EncodedValue] = []
            try service.reader.withDocument(name.byteSpan, at: before, service.coldRead) { found in
                if let found { values = OrderText.values(of: orders, name: name, fields: found.fields) }
            }
            if values.isEmpty { throw .invalidArgument("The page token is not valid.") }
            return values
        case .document, .collection: throw .invalidArgument("The page token belongs to another listing.")
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
