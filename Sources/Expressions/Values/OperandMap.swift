// Maps that expressions compute with.

internal import Basics
internal import DocumentModel

/// Outside of the map, where `Value` is an associated type. The fuzzer's build has no module to name it by.
private let vectorTypeKey = Value.vectorTypeKey

/// Names with their operands, sorted by the names' UTF-8 bytes and without duplicates.
package struct OperandMap: Sendable {
    package typealias Entry = (key: String, value: Operand)

    /// Sorted by UTF-8 bytes of the key; no key twice.
    package private(set) var entries: [Entry]

    package init() { entries = [] }

    /// Takes entries that are sorted and have no key twice.
    package init(sorted entries: [Entry]) { self.entries = entries }

    /// Sorts the entries; of several with one key the last one counts.
    package init(_ given: [Entry]) {
        entries = []
        entries.reserveCapacity(given.count)
        let order = given.indices.sorted { left, right in
            let comparison = given[left].key.compareUTF8(given[right].key)
            return comparison != 0 ? comparison < 0 : left < right
        }
        for index in order {
            if let last = entries.last, last.key.hasSameUTF8(as: given[index].key) { entries.removeLast() }
            entries.append(given[index])
        }
    }

    package var count: Int { entries.count }
    package var isEmpty: Bool { entries.isEmpty }
    package var keys: [String] { entries.map(\.key) }

    /// Whether paths lead into the map, by the rule that `DocumentBytes.isPlain` has for encoded maps.
    var isPlain: Bool {
        switch count {
        case 1: entries[0].key.withUTF8Span { SentinelKind(key: $0) == nil }
        case 2: self[vectorTypeKey] == nil
        default: true
        }
    }

    /// The operand of a key, or nil.
    package subscript(key: String) -> Operand? { index(of: key).map { entries[$0].value } }

    /// The place of a key in ``entries``, or nil.
    package func index(of key: String) -> Int? {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            let order = entries[middle].key.compareUTF8(key)
            if order == 0 { return middle }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return nil
    }
}

extension OperandMap: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, Operand)...) {
        self.init(elements.map { (key: $0.0, value: $0.1) })
    }
}
