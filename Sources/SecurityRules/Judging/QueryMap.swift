// `request.query`.

internal import DocumentModel
internal import Expressions

enum QueryMap {
    /// The map with `limit`, `offset`, `orderBy` and what the emulator adds to them.
    static func map(of query: StructuredQuery?, collection: String) -> OperandMap {
        let orders = (query?.orderBy ?? []).map { order in
            (key: order.field.description, value: Operand.string(order.direction == .ascending ? "ASC" : "DESC"))
        }
        let limit: Operand = query?.limit.map { .integer(Int64($0)) } ?? .null
        let isGroup = query?.from.first?.allDescendants ?? false
        return OperandMap([
            ("limit", limit), ("offset", .integer(Int64(query?.offset ?? 0))), ("orderBy", .map(OperandMap(orders))),
            ("kind", .string(collection)), ("allDescendants", .boolean(isGroup)),
        ])
    }
}
