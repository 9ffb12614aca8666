// The form of a query: everything but its values and the ids of the documents above its collection.

internal import DocumentModel
internal import QueryEngine

/// Hashes and texts of forms.
enum QueryForm {
    /// Characters of a text; longer ones are cut.
    private static let charactersMax = 300

    static func hash(
        _ query: StructuredQuery, _ aggregations: [Aggregation], below parent: String, in database: DatabaseName,
        into hasher: inout Hasher
    ) {
        hasher.combine(database)
        // Most queries are below the root.
        if parent.utf8.count > rootByteCount(database) { hasher.combine(collections(of: parent, database)) }
        for selector in query.from {
            hasher.combine(selector.collectionID)
            hasher.combine(selector.allDescendants)
        }
        if let filter = query.filter { hash(filter, into: &hasher) }
        for order in query.orderBy {
            hasher.combine(order.field)
            hasher.combine(order.direction)
        }
        hasher.combine(query.limit == nil)
        hasher.combine(query.offset == 0)
        hasher.combine(query.startAt == nil)
        hasher.combine(query.endAt == nil)
        hasher.combine(query.findNearest?.vectorField)
        for aggregation in aggregations { hash(aggregation.operation, into: &hasher) }
    }

    private static func hash(_ operation: Aggregation.Operation, into hasher: inout Hasher) {
        switch operation {
        case .count: hasher.combine(0)
        case .sum(let field):
            hasher.combine(1)
            hasher.combine(field)
        case .average(let field):
            hasher.combine(2)
            hasher.combine(field)
        }
    }

    private static func hash(_ filter: Filter, into hasher: inout Hasher) {
        switch filter {
        case .and(let parts):
            hasher.combine(parts.count)
            for part in parts { hash(part, into: &hasher) }
        case .or(let parts):
            hasher.combine(-parts.count)
            for part in parts { hash(part, into: &hasher) }
        case .field(let path, let operation, _):
            hasher.combine(path)
            hasher.combine(operation)
        case .unary(let path, let operation):
            hasher.combine(path)
            hasher.combine(operation)
        }
    }

    /// A text such as `users/*/books --where 'year >= ?' --order-by year:desc --limit ?`.
    static func text(
        _ query: StructuredQuery, _ aggregations: [Aggregation], below parent: String, in database: DatabaseName
    ) -> String {
        let selector = query.from.first
        let isGroup = selector?.allDescendants == true
        let id = selector?.collectionID ?? ""
        var words = [collections(of: parent, database) + (id.isEmpty ? "*" : id)]
        if isGroup { words.append("--group") }
        for condition in conditions(query.filter) { words.append("--where '\(condition)'") }
        if !query.orderBy.isEmpty {
            let orders = query.orderBy.map { "\($0.field)\($0.direction == .descending ? ":desc" : "")" }
            words.append("--order-by \(orders.joined(separator: ","))")
        }
        if query.limit != nil { words.append("--limit ?") }
        if query.offset > 0 { words.append("--offset ?") }
        if query.startAt != nil { words.append("from ?") }
        if query.endAt != nil { words.append("to ?") }
        if let nearest = query.findNearest { words.append("nearest \(nearest.vectorField)") }
        words += aggregations.map(word)
        return String(words.joined(separator: " ").prefix(charactersMax))
    }

    /// The length of the name of a database's documents, counted without making it.
    private static func rootByteCount(_ database: DatabaseName) -> Int { database.utf8.count + "/documents".utf8.count }

    /// The path of a parent below the documents, with a star for each id, and a slash at its end; empty for the root.
    private static func collections(of parent: String, _ database: DatabaseName) -> String {
        let root = rootByteCount(database)
        if parent.utf8.count <= root + 1 { return "" }
        let path = parent.utf8.dropFirst(root + 1).split(separator: UInt8(ascii: "/"))
        return path.enumerated().map { index, segment in
            index.isMultiple(of: 2) ? "\(String(decoding: segment, as: UTF8.self))/" : "*/"
        }.joined()
    }

    private static func conditions(_ filter: Filter?) -> [String] {
        switch filter {
        case nil: []
        case .and(let parts): parts.flatMap { conditions($0) }
        case .or(let parts): [parts.map { conditions($0).joined(separator: " and ") }.joined(separator: " or ")]
        case .field(let path, let operation, _): ["\(path) \(operation.symbol) ?"]
        case .unary(let path, let operation): ["\(path) \(operation.name)"]
        }
    }

    private static func word(_ aggregation: Aggregation) -> String {
        switch aggregation.operation {
        case .count: "--count"
        case .sum(let field): "--sum \(field)"
        case .average(let field): "--avg \(field)"
        }
    }
}
