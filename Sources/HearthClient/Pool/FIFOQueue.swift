// A first-in, first-out queue over an array, for calls that wait for a connection.

/// A queue with amortised constant `append` and `popFirst`. Positions count from the oldest element.
package struct FIFOQueue<Element>: RandomAccessCollection {
    private var storage: [Element?] = []
    private var head = 0

    package init() {}

    package var startIndex: Int { 0 }
    package var endIndex: Int { storage.count - head }

    package subscript(position: Int) -> Element {
        guard let element = storage[head + position] else { preconditionFailure("every position has an element") }
        return element
    }

    package mutating func append(_ element: Element) { storage.append(element) }

    /// Inserts an element before the one at a position. Costs the distance to the nearer end, on average of many calls.
    package mutating func insert(_ element: Element, at position: Int) {
        if position * 2 >= count {
            storage.insert(element, at: head + position)
            return
        }
        if head == 0 {
            head = count / 2 + 1
            storage.insert(contentsOf: repeatElement(nil, count: head), at: 0)
        }
        head -= 1
        for index in head..<head + position { storage[index] = storage[index + 1] }
        storage[head + position] = element
    }

    /// Takes the oldest element.
    package mutating func popFirst() -> Element? {
        guard head < storage.count else { return nil }
        let element = storage[head]
        storage[head] = nil
        head += 1
        if head == storage.count {
            storage.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= 64, head * 2 >= storage.count {
            storage.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Takes every element that satisfies the predicate, oldest first; the others keep their order. O(n).
    package mutating func removeAll(where shouldRemove: (Element) -> Bool) -> [Element] {
        var removed: [Element] = []
        var kept: [Element?] = []
        for case let element? in storage[head...] {
            if shouldRemove(element) { removed.append(element) } else { kept.append(element) }
        }
        storage = kept
        head = 0
        return removed
    }
}
