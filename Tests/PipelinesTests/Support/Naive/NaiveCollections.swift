// Arrays, vectors and maps, for the naive evaluator.

import DocumentModel

extension NaiveEvaluator {
    static let arrays: [NaiveFunction] = [
        NaiveFunction(total: "array", [1, 2, 3]) { .array($0.map { $0 ?? .null }) },
        NaiveFunction(total: "array_contains", [2], [arrayValues, [1, 2, "a", 1.0]]) { arguments in
            elements(arguments[0]) { elements in .boolean(elements.contains { same($0, arguments[1]) }) }
        },
        NaiveFunction("array_contains_all", [2], [arrayValues, arrayValues]) { arguments in
            both(arguments) { left, right in .boolean(right.allSatisfy { wanted in left.contains { same($0, wanted) } })
            }
        },
        NaiveFunction("array_contains_any", [2], [arrayValues, arrayValues]) { arguments in
            both(arguments) { left, right in .boolean(right.contains { wanted in left.contains { same($0, wanted) } }) }
        },
        NaiveFunction("array_length", [1], [arrayValues]) { elements($0[0]) { .integer($0.count) } },
        NaiveFunction("array_concat", [1, 2, 3], [arrayValues]) { appended($0) },
        NaiveFunction("array_reverse", [1], [arrayValues]) { elements($0[0]) { .array($0.reversed()) } },
        NaiveFunction("array_first", [1], [arrayValues]) { elements($0[0]) { .maybe($0.first) } },
        NaiveFunction("array_last", [1], [arrayValues]) { elements($0[0]) { .maybe($0.last) } },
        NaiveFunction("array_get", [2], [arrayValues, smallIntegers]) { element($0) },
        NaiveFunction("offset", [2], [arrayValues, smallIntegers]) { element($0) },
        NaiveFunction("array_first_n", [2], [arrayValues, smallIntegers]) { some($0) { Array($0.prefix($1)) } },
        NaiveFunction("array_last_n", [2], [arrayValues, smallIntegers]) { some($0) { Array($0.suffix($1)) } },
        NaiveFunction("array_slice", [2, 3], [arrayValues, smallIntegers]) { arguments in
            elements(arguments[0]) { elements in
                range(arguments, of: elements.count).map { .array(Array(elements[$0])) } ?? .failed
            }
        },
        NaiveFunction("maximum_n", [2], [arrayValues, smallIntegers]) {
            some($0) { Array(sorted($0) { $0 > 0 }.prefix($1)) }
        },
        NaiveFunction("minimum_n", [2], [arrayValues, smallIntegers]) {
            some($0) { Array(sorted($0) { $0 < 0 }.prefix($1)) }
        },
        NaiveFunction(total: "array_index_of", [2, 3], [arrayValues, [1, 2, "a"], ["first", "last"]]) { arguments in
            elements(arguments[0]) { elements in
                if arguments.count == 3, arguments[2] != "first", arguments[2] != "last" { return .failed }
                let indices = elements.indices.filter { same(elements[$0], arguments[1]) }
                let isLast = arguments.count == 3 && arguments[2] == "last"
                return .integer((isLast ? indices.last : indices.first) ?? -1)
            }
        },
        NaiveFunction(total: "array_index_of_all", [2], [arrayValues, [1, 2, "a"]]) { arguments in
            elements(arguments[0]) { elements in
                .array(elements.indices.filter { same(elements[$0], arguments[1]) }.map { .integer(Int64($0)) })
            }
        },
        // The elements that are equal to the second argument.
        NaiveFunction(
            form: "array_filter", [2], [arrayValues, [1, 2, "a"]],
            call: { .call("array_filter", $0[0], "e", .call("equal", .variable("e"), $0[1])) }
        ) { arguments in
            each(of: arguments[0]) { elements in
                if elements.isEmpty { return .array([]) }
                return arguments[1].isFailed ? .failed : .array(elements.filter { same($0, arguments[1].present) })
            }
        },
        // The elements with their indices, and the second argument.
        NaiveFunction(
            form: "array_transform", [2], [arrayValues, [1, 2, "a"]],
            call: { .call("array_transform", $0[0], "e", "i", .call("array", .variable("e"), .variable("i"), $0[1])) }
        ) { arguments in
            each(of: arguments[0]) { elements in
                if elements.isEmpty { return .array([]) }
                if arguments[1].isFailed { return .failed }
                return .array(
                    elements.enumerated().map { .array([$1, .integer(Int64($0)), arguments[1].present ?? .null]) })
            }
        },
        NaiveFunction("vector_length", [1], [vectorValues]) { vector($0[0]).map { .integer($0.count) } ?? .failed },
        NaiveFunction("dot_product", [2], [vectorValues], isApproximate: true) { vectors($0) { product($0, $1) } },
        NaiveFunction("euclidean_distance", [2], [vectorValues], isApproximate: true) { arguments in
            vectors(arguments) { left, right in
                let difference = zip(left, right).map { $0 - $1 }
                return product(difference, difference).squareRoot()
            }
        },
        NaiveFunction("cosine_distance", [2], [vectorValues], isApproximate: true) { arguments in
            vectors(arguments) { left, right in
                1 - product(left, right) / (product(left, left).squareRoot() * product(right, right).squareRoot())
            }
        },
    ]

    /// Null for null and absent, a failure for what is not an array.
    private static func elements(_ value: Value?, _ body: ([Value]) -> NaiveOutcome) -> NaiveOutcome {
        switch value {
        case nil, .null?: .null
        case .array(let elements)?: body(elements)
        default: .failed
        }
    }

    private static func each(of array: NaiveOutcome, _ body: ([Value]) -> NaiveOutcome) -> NaiveOutcome {
        array.isFailed ? .failed : elements(array.present, body)
    }

    private static func both(_ arguments: [Value], _ body: ([Value], [Value]) -> NaiveOutcome) -> NaiveOutcome {
        elements(arguments[0]) { left in elements(arguments[1]) { body(left, $0) } }
    }

    static func appended(_ arguments: [Value]) -> NaiveOutcome {
        var all: [Value] = []
        for argument in arguments {
            guard case .array(let elements) = argument else { return .failed }
            all += elements
        }
        return .array(all)
    }

    private static func element(_ arguments: [Value]) -> NaiveOutcome {
        elements(arguments[0]) { elements in
            guard case .integer(let index) = arguments[1] else { return .failed }
            return .maybe(
                elements.indices.first { Int64($0) == index || Int64($0 - elements.count) == index }.map {
                    elements[$0]
                })
        }
    }

    private static func some(_ arguments: [Value], _ body: ([Value], Int) -> [Value]) -> NaiveOutcome {
        elements(arguments[0]) { elements in count(arguments[1]).map { .array(body(elements, $0)) } ?? .failed }
    }

    /// Insertion: elements that are equal keep their order; null is left out.
    private static func sorted(_ elements: [Value], _ isBefore: (Int) -> Bool) -> [Value] {
        var result: [Value] = []
        for element in elements where !isNull(element) {
            let place = result.firstIndex { isBefore(total(element, $0)) } ?? result.count
            result.insert(element, at: place)
        }
        return result
    }

    private static func vectors(_ arguments: [Value], _ body: ([Double], [Double]) -> Double) -> NaiveOutcome {
        guard let left = vector(arguments[0]), let right = vector(arguments[1]), left.count == right.count else {
            return .failed
        }
        return .double(body(left, right))
    }

    private static func product(_ left: [Double], _ right: [Double]) -> Double {
        zip(left, right).map { $0 * $1 }.reduce(0, +)
    }

    // MARK: Maps

    private static let keys: [Value] = ["a", "k", "z", "__type__"]

    static let maps: [NaiveFunction] = [
        NaiveFunction(total: "map", [2, 3, 4], [keys, [], keys, []]) { set($0[...], in: [:]) },
        NaiveFunction(total: "map_get", [2], [mapValues, keys]) { get($0) },
        NaiveFunction(total: "get_field", [2], [mapValues, keys]) { get($0) },
        NaiveFunction(total: "map_set", [3, 4, 5], [mapValues, keys, [], keys, []]) { arguments in
            map(arguments[0]) { set(arguments.dropFirst(), in: $0, removesAbsent: true) }
        },
        NaiveFunction("map_remove", [2, 3], [mapValues, keys]) { arguments in
            map(arguments[0]) { map in
                let removed = arguments.dropFirst().compactMap(string)
                if removed.count < arguments.count - 1 { return .failed }
                return .value(
                    .map(MapValue(map.entries.filter { !removed.contains($0.key) }.map { ($0.key, $0.value) })))
            }
        },
        NaiveFunction("map_merge", [1, 2, 3], [mapValues]) { arguments in
            var merged: [String: Value] = [:]
            for argument in arguments {
                guard case .map(let map) = argument else { return .failed }
                for entry in map.entries { merged[entry.key] = entry.value }
            }
            return .value(.map(MapValue(merged.map { ($0.key, $0.value) })))
        },
        NaiveFunction("map_keys", [1], [mapValues]) { map($0[0]) { .array($0.entries.map { .string($0.key) }) } },
        NaiveFunction("map_values", [1], [mapValues]) { map($0[0]) { .array($0.entries.map(\.value)) } },
        NaiveFunction("map_entries", [1], [mapValues]) { arguments in
            map(arguments[0]) { .array($0.entries.map { .map(["k": .string($0.key), "v": $0.value]) }) }
        },
    ]

    private static func map(_ value: Value?, _ body: (MapValue) -> NaiveOutcome) -> NaiveOutcome {
        switch value {
        case nil, .null?: .null
        case .map(let map)?: body(map)
        default: .failed
        }
    }

    /// Absent for what is not a map.
    private static func get(_ arguments: [Value?]) -> NaiveOutcome {
        guard let map = arguments[0], !isNull(map), let key = arguments[1], !isNull(key) else { return .null }
        guard let name = string(key) else { return .failed }
        if case .map(let map) = map { return .maybe(map[name]) }
        return .absent
    }

    /// Keys and values in turn; absent values are left out.
    private static func set(
        _ arguments: ArraySlice<Value?>, in map: MapValue, removesAbsent: Bool = false
    ) -> NaiveOutcome {
        var entries = Dictionary(uniqueKeysWithValues: map.entries.map { ($0.key, $0.value) })
        var rest = arguments
        while let key = rest.popFirst() {
            guard let name = key.flatMap(string), let value = rest.popFirst() else { return .failed }
            if value != nil || removesAbsent { entries[name] = value }
        }
        return .value(.map(MapValue(entries.map { ($0.key, $0.value) })))
    }
}
