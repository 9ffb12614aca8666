// The entries of a map, or of a whole document, as a Swift value.

/// Field names with their values, sorted by the names' UTF-8 bytes and without duplicates.
///
/// For transforms, tools and tests; requests and stored documents stay wire bytes.
package struct MapValue: Sendable {
    package typealias Entry = (key: String, value: Value)

    /// Sorted by UTF-8 bytes of the key; no key twice.
    package private(set) var entries: [Entry]

    package init() {
        entries = []
    }

    /// Sorts the entries; of several with one key the last wins.
    package init(_ entries: some Sequence<Entry>) {
        let given = Array(entries)
        let isSorted = zip(given, given.dropFirst()).allSatisfy { $0.key.compareUTF8($1.key) < 0 }
        if isSorted {
            self.entries = given
            return
        }
        // Sorted in one go rather than inserted one by one: entries from the wire may be many and in any order.
        let sorted = given.indices.sorted { left, right in
            let order = given[left].key.compareUTF8(given[right].key)
            return order != 0 ? order < 0 : left < right
        }
        self.entries = []
        self.entries.reserveCapacity(given.count)
        for index in sorted {
            if let last = self.entries.last, last.key.hasSameUTF8(as: given[index].key) { self.entries.removeLast() }
            self.entries.append(given[index])
        }
    }

    package var count: Int { entries.count }
    package var isEmpty: Bool { entries.isEmpty }

    /// The value of a key; assigning nil removes it.
    package subscript(key: String) -> Value? {
        get {
            let (index, found) = search(key)
            // Not `: nil`, which would be the value null: `Value` can be written as a nil literal.
            return found ? .some(entries[index].value) : .none
        }
        set {
            let (index, found) = search(key)
            switch (newValue, found) {
            case (let value?, true): entries[index].value = value
            case (let value?, false): entries.insert((key, value), at: index)
            case (nil, true): entries.remove(at: index)
            case (nil, false): break
            }
        }
    }

    /// Where the key stands or would stand.
    private func search(_ key: String) -> (index: Int, found: Bool) {
        // Maps are mostly built in order: look at the end first.
        if let last = entries.last, last.key.compareUTF8(key) < 0 { return (entries.count, false) }
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            let order = entries[middle].key.compareUTF8(key)
            if order == 0 { return (middle, true) }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return (low, false)
    }
}

extension MapValue: Equatable {
    /// Same keys, byte for byte, with identical values.
    package static func == (left: MapValue, right: MapValue) -> Bool {
        left.entries.count == right.entries.count
            && zip(left.entries, right.entries).allSatisfy { $0.key.hasSameUTF8(as: $1.key) && $0.value == $1.value }
    }
}

extension MapValue: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, Value)...) {
        self.init(elements.map { (key: $0.0, value: $0.1) })
    }
}
