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
            guard case .cursor(let cursor) = token else {
                throw RequestError.invalidArgument("The page token belongs to another listing.")
            }
            query.startAt = Cursor(values: cursor.values, before: false)
        }
        // One more than fits shows whether there is another page.
        query.limit = Int32(clamping: page.limit + 1)
        let plan = try message.parent.withUTF8Span { (parent) throws(RequestError) in
            try QueryPlan(query, parent: parent)
        }
        let namePrefix = "\(plan.database.documentsRoot)/"
        var run = QueryExecution(plan)
        let selection = message.mask?.selection
        var lastValues: [EncodedValue] = []
        while true {
            let source = try reader.source(at: point, matching: plan.matcher, coldRead)
            let progress = try run.next(from: source) { (result) throws(RequestError) in
                guard page.hasRoom(writer.count) else {
                    page.nextToken = .cursor(Cursor(values: lastValues, before: false))
                    return .full
                }
                page.count += 1
                page.documents += 1
                let name = Array(namePrefix.utf8) + [UInt8](copying: result.path)
                lastValues = OrderText.values(of: orders, name: name, fields: result.fields)
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
            var words = part.split(separator: " ", omittingEmptySubsequences: true)
            var direction = SortDirection.ascending
            if words.count > 1, let last = words.last?.lowercased(), last == "asc" || last == "desc" {
                direction = last == "asc" ? .ascending : .descending
                words.removeLast()
            }
            guard !words.isEmpty else { throw .invalidArgument("An order in order_by is empty.") }
            orders.append(Order(field: try FieldPath(words.joined(separator: " ")), direction: direction))
        }
        if !orders.contains(where: { $0.field.isDocumentName }) {
            orders.append(Order(field: .documentName, direction: orders.last?.direction ?? .ascending))
        }
        return orders
    }

    /// The parts between commas that are not within backticks.
    package static func split(_ text: String) -> [String] {
        var parts = [""]
        var quotes = BackquoteScanner()
        for character in text {
            if !quotes.covers(character), character == "," {
                parts.append("")
            } else {
                parts[parts.count - 1].append(character)
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
