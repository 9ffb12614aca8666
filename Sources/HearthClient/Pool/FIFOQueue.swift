// A first-in, first-out queue over an array, for calls that wait for a connection.

/// A queue with amortised constant `append` and `popFirst`.
package struct FIFOQueue<Element> {
    private var storage: [Element?] = []
    private var head = 0

    package init() {}

    package var count: Int { storage.count - head }
    package var isEmpty: Bool { head == storage.count }

    package mutating func append(_ element: Element) { storage.append(element) }

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
