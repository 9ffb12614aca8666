// Which entries change when an array becomes another one.
//
// Elements are compared by the keys of their entries, not by their bytes: 1 and 1.0 have one key, and so have long
// texts with the same beginning.

internal import Basics

/// Compares the entries by the elements of a new array with those of the old one. Belongs to one thread.
///
/// Call `want` for the entries of the new array, then `isToRemove` for those of the old one, then `finish`. Each entry
/// may come several times.
struct ElementChanges: ~Copyable {
    /// The keys of entries, each with what is known of it.
    private var states = ByteTable()
    private var key = ByteBuffer(capacity: 512)

    private enum State {
        static let wanted = 0
        static let kept = 1
        static let removed = 2
    }

    /// The new array has an entry.
    mutating func want(_ key: borrowing ByteBuffer) {
        _ = states.insert(key.bytes, hash: ByteTable.hash(key.bytes), value: State.wanted)
    }

    /// The old array has an entry.
    /// - Returns: whether it goes now: the new array does not have it.
    mutating func isToRemove(_ key: borrowing ByteBuffer) -> Bool {
        let hash = ByteTable.hash(key.bytes)
        switch states.insert(key.bytes, hash: hash, value: State.removed) {
        case nil: return true
        case State.wanted?: states.set(key.bytes, hash: hash, to: State.kept)
        default: break
        }
        return false
    }

    /// Puts the entries that the old array does not have, and forgets everything.
    mutating func finish<Sink: IndexEntrySink & ~Copyable>(value: RawSpan, into sink: inout Sink) {
        for position in 0..<states.count where states.value(at: position) == State.wanted {
            key.reset()
            states.appendKey(at: position, to: &key)
            sink.put(entry: key.bytes, value: value)
        }
        states.removeAll()
    }
}
