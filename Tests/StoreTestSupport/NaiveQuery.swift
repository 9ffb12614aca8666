// A query evaluated the obvious way, on value trees: the reference for the real executor.
//
// Written from the semantics page, without looking at wire bytes, plans or sort keys. It assumes queries that keep the
// rules; the rules themselves are tested by tables.

package import DocumentModel

package enum NaiveQuery {
    package static func results(
        _ query: StructuredQuery, parent: String, of documents: [TestDocument]
    ) -> [TestDocument] {
        let order = effectiveOrder(query)
        var matches = documents.filter { document in
            isInScope(document, query.from.first ?? CollectionSelector(collectionID: ""), parent: parent)
                && query.filter.map { holds($0, document) } ?? true
                && order.allSatisfy { has($0.field, document) }
        }
        matches.sort { compare($0, $1, order) < 0 }
        if let cursor = query.startAt {
            matches.removeAll {
                let order = compare($0, cursor, order)
                return order < 0 || (order == 0 && !cursor.before)
            }
        }
        if let cursor = query.endAt {
            matches.removeAll {
                let order = compare($0, cursor, order)
                return order > 0 || (order == 0 && cursor.before)
            }
        }
        let window = matches.dropFirst(Int(query.offset)).prefix(query.limit.map(Int.init) ?? .max)
        return window.map { document in
            guard let select = query.select, !select.fields.isEmpty else { return document }
            var projected = document
            projected.fields = MapValue()
            for path in select.fields where !path.isDocumentName {
                guard let value = value(path, document) else { continue }
                set(value, path.segments[...], in: &projected.fields)
            }
            return projected
        }
    }

    /// The totals of a query that selects no fields.
    package static func totals(
        _ query: StructuredQuery, _ operations: [Aggregation.Operation], parent: String, of documents: [TestDocument]
    ) -> [Value] {
        let totalled = operations.compactMap { operation -> FieldPath? in
            switch operation {
            case .count: nil
            case .sum(let field), .average(let field): field
            }
        }
        // Documents without a totalled field are left out, and a limit counts in the order of these fields.
        var ordered = query
        if !totalled.isEmpty {
            var order = effectiveOrder(query)
            let name = order.removeLast()
            for field in Set(totalled).sorted() where !order.contains(where: { $0.field == field }) {
                order.append(Order(field: field, direction: name.direction))
            }
            ordered.orderBy = order + [name]
        }
        let found = results(ordered, parent: parent, of: documents)
        return operations.map { operation in
            switch operation {
            case .count(let upTo): .integer(min(Int64(found.count), upTo ?? .max))
            case .sum(let field): sum(found.compactMap { value(field, $0) }).total
            case .average(let field): average(found.compactMap { value(field, $0) })
            }
        }
    }

    private static func average(_ values: [Value]) -> Value {
        let (total, count) = sum(values)
        if count == 0 { return .null }
        return switch total {
        case .integer(let number): .double(Double(number) / Double(count))
        case .double(let number): .double(number / Double(count))
        default: .null
        }
    }

    private static func sum(_ values: [Value]) -> (total: Value, count: Int) {
        var (integers, doubles, hasDoubles, count): (Int128, Double, Bool, Int) = (0, 0, false, 0)
        for value in values {
            switch value {
            case .integer(let number): integers += Int128(number)
            case .double(let number): (doubles, hasDoubles) = (doubles + number, true)
            default: continue
            }
            count += 1
        }
        if !hasDoubles, let total = Int64(exactly: integers) { return (.integer(total), count) }
        return (.double(Double(integers) + doubles), count)
    }

    package static func isInScope(_ document: TestDocument, _ selector: CollectionSelector, parent: String) -> Bool {
        let place = parent.isEmpty ? [] : parent.split(separator: "/").map(String.init)
        let collection = document.collection.split(separator: "/").map(String.init)
        guard collection.count > place.count, Array(collection.prefix(place.count)) == place else { return false }
        if selector.allDescendants {
            return selector.collectionID.isEmpty || collection.last == selector.collectionID
        }
        if selector.collectionID.isEmpty { return collection.count == place.count + 1 }
        return collection == place + [selector.collectionID]
    }

    package static func effectiveOrder(_ query: StructuredQuery) -> [Order] {
        var order = query.orderBy
        let direction = order.last?.direction ?? .ascending
        func add(_ field: FieldPath) {
            if !order.contains(where: { $0.field == field }) { order.append(Order(field: field, direction: direction)) }
        }
        var fields: [FieldPath] = []
        func collect(_ filter: Filter) {
            switch filter {
            case .and(let parts), .or(let parts): parts.forEach(collect)
            case .field(let path, let operation, let operand):
                switch operation {
                case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual:
                    let bound = try? Value(wire: operand.span)
                    if let bound, bound != .null, !isNaN(bound) { fields.append(path) }
                case .notEqual, .notIn: fields.append(path)
                default: break
                }
            case .unary(let path, let operation):
                if operation == .isNotNaN || operation == .isNotNull { fields.append(path) }
            }
        }
        if let filter = query.filter { collect(filter) }
        for field in fields.sorted() where !field.isDocumentName { add(field) }
        add(.documentName)
        return order
    }

    package static func value(_ path: FieldPath, _ document: TestDocument) -> Value? {
        if path.isDocumentName { return .reference("\(testRoot)/\(document.path)") }
        var map = document.fields
        for segment in path.segments.dropLast() {
            guard case .map(let inner)? = map[segment], !NaiveWrites.isVector(inner) else { return .none }
            map = inner
        }
        return map[path.segments[path.count - 1]]
    }

    // `value != nil` would compare with the value null: `Value` is expressible by a nil literal.
    package static func has(_ path: FieldPath, _ document: TestDocument) -> Bool {
        if case .some = value(path, document) { true } else { false }
    }

    private static func set(_ value: Value, _ path: ArraySlice<String>, in map: inout MapValue) {
        guard let first = path.first else { return }
        if path.count == 1 {
            map[first] = value
        } else {
            var inner = MapValue()
            if case .map(let existing)? = map[first] { inner = existing }
            set(value, path.dropFirst(), in: &inner)
            map[first] = .map(inner)
        }
    }

    package static func compare(_ left: TestDocument, _ right: TestDocument, _ order: [Order]) -> Int {
        for component in order {
            guard let left = value(component.field, left), let right = value(component.field, right) else { continue }
            let sign = ValueOrder.compare(left, right).rawValue
            if sign != 0 { return component.direction == .ascending ? sign : -sign }
        }
        return 0
    }

    package static func compare(_ document: TestDocument, _ cursor: Cursor, _ order: [Order]) -> Int {
        for (component, bound) in zip(order, cursor.values) {
            guard let value = value(component.field, document), let bound = try? Value(wire: bound.span) else {
                continue
            }
            let sign = ValueOrder.compare(value, bound).rawValue
            if sign != 0 { return component.direction == .ascending ? sign : -sign }
        }
        return 0
    }

    package static func isNaN(_ value: Value) -> Bool {
        if case .double(let number) = value { number.isNaN } else { false }
    }

    package static func typeClass(_ value: Value) -> Int {
        switch value {
        case .null: 1
        case .boolean: 2
        case .integer, .double: 3
        case .timestamp: 4
        case .string: 5
        case .bytes: 6
        case .reference: 7
        case .geoPoint: 8
        case .array: 9
        case .map(let map): map.entries.contains { $0.key == "__type__" } ? 10 : 11
        }
    }

    package static func holds(_ filter: Filter, _ document: TestDocument) -> Bool {
        switch filter {
        case .and(let parts): return parts.allSatisfy { holds($0, document) }
        case .or(let parts): return parts.contains { holds($0, document) }
        case .unary(let path, let operation):
            guard let value = value(path, document) else { return false }
            return switch operation {
            case .isNull: value == .null
            case .isNaN: isNaN(value)
            case .isNotNull: value != .null
            case .isNotNaN: value != .null && !isNaN(value)
            }
        case .field(let path, let operation, let encoded):
            guard let value = value(path, document), let operand = try? Value(wire: encoded.span) else { return false }
            return holds(value, operation, operand)
        }
    }

    private static func holds(_ value: Value, _ operation: FieldOperator, _ operand: Value) -> Bool {
        var list: [Value] = []
        if case .array(let elements) = operand { list = elements }
        var elements: [Value] = []
        if case .array(let own) = value { elements = own }
        // Null and NaN among the operands of lists and ranges match nothing.
        func usable(_ operand: Value) -> Bool { operand != .null && !isNaN(operand) }
        func inRange(_ accepted: [Ordering]) -> Bool {
            usable(operand) && typeClass(value) == typeClass(operand) && !isNaN(value)
                && accepted.contains(ValueOrder.compare(value, operand))
        }
        switch operation {
        case .equal: return ValueOrder.equal(value, operand)
        case .notEqual: return value != .null && !ValueOrder.equal(value, operand)
        case .lessThan: return inRange([.less])
        case .lessThanOrEqual: return inRange([.less, .equal])
        case .greaterThan: return inRange([.greater])
        case .greaterThanOrEqual: return inRange([.greater, .equal])
        case .isIn: return list.contains { usable($0) && ValueOrder.equal(value, $0) }
        case .notIn:
            return value != .null && !list.contains(.null) && !list.contains { ValueOrder.equal(value, $0) }
        case .arrayContains: return usable(operand) && elements.contains { ValueOrder.equal($0, operand) }
        case .arrayContainsAny:
            return elements.contains { element in list.contains { usable($0) && ValueOrder.equal(element, $0) } }
        }
    }
}
