// Databases and their numbers.
//
//     01 | 'd' | projects/{p}/databases/{d}, <= 248    ->    | number, 4 | the full name |
//
// A database comes into being with its first document. Its number is part of every key, in place of its long name.
// Names longer than a key's part are cut as paths are.

internal import Basics
internal import DocumentModel
internal import StoreFormat
internal import Synchronization

/// All databases of the store. Thread-safe.
///
/// A number is set aside before it is needed, a commit or a transaction that reads what is not there
/// yet, and is stored with the first commit. One that was only set aside is free again after a restart.
final class DatabaseDirectory: Sendable {
    private struct State {
        var numbers: [DatabaseName: UInt32] = [:]
        var stored: Set<UInt32> = []
        var nextNumber: UInt32 = 1
        /// The stored database that was reserved last: nearly always the next one too, and found without hashing its
        /// name.
        var last: (name: DatabaseName, number: UInt32)?
    }

    private let state = Mutex(State())
    private let maximum: Int

    init(maximum: Int) {
        self.maximum = maximum
    }

    /// Databases that are stored.
    var storedCount: Int { state.withLock { $0.stored.count } }

    /// A database's number. Readers may learn of it before its first commit is visible: they find it empty.
    func number(of name: DatabaseName) -> UInt32? {
        state.withLock { $0.numbers[name] }
    }

    /// A database's number, set aside now if it has none, and whether it is stored.
    /// - Throws: `RESOURCE_EXHAUSTED` when there are too many.
    func reserve(_ name: DatabaseName) throws(RequestError) -> (number: UInt32, isStored: Bool) {
        let found = state.withLock { state -> (UInt32, Bool)? in
            if let last = state.last, last.name == name { return (last.number, true) }
            if let number = state.numbers[name] {
                let isStored = state.stored.contains(number)
                if isStored { state.last = (name, number) }
                return (number, isStored)
            }
            if state.numbers.count >= maximum { return nil }
            let number = state.nextNumber
            state.nextNumber += 1
            state.numbers[name] = number
            return (number, false)
        }
        guard let found else {
            throw RequestError(.resourceExhausted, "The server has reached its limit of \(maximum) databases.")
        }
        return found
    }

    /// Takes note that a database's keys are staged, or were found at opening.
    func markStored(_ name: DatabaseName, number: UInt32) {
        state.withLock { state in
            state.numbers[name] = number
            state.stored.insert(number)
            state.nextNumber = max(state.nextNumber, number + 1)
        }
    }

    /// All stored databases with their numbers.
    var all: [(name: DatabaseName, number: UInt32)] {
        state.withLock { state in
            state.numbers.filter { state.stored.contains($0.value) }.map { (name: $0.key, number: $0.value) }
        }
    }

    /// The first bytes of every database's key.
    static let keyPrefix: [UInt8] = [KeySpace.meta.rawValue, UInt8(ascii: "d")]

    /// Writes a database's key and value into empty writers.
    static func write(
        _ name: DatabaseName, number: UInt32, key: inout ByteBuffer, value: inout ByteBuffer
    ) {
        key.reset()
        key.append(keyPrefix)
        key.append(name.utf8)
        key.cutKeyPart(from: keyPrefix.count)
        value.reset()
        value.append(littleEndian: number)
        value.append(name.utf8)
    }

    /// Reads a database's value; nil when it is none.
    static func read(value: RawSpan) -> (name: DatabaseName, number: UInt32)? {
        guard value.byteCount > 4, let name = try? DatabaseName(value.extracting(4..<value.byteCount)) else {
            return nil
        }
        // In bounds by the check above.
        return (name, UInt32(littleEndian: unsafe value.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt32.self)))
    }
}
