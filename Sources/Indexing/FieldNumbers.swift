// Numbers of fields: what stands for a field's path in index keys.
//
//     04 | database, 4 | number of the field around it, varint | name    ->    | number, varint |
//     01 | 'f'                                                           ->    | the next number, varint |
//
// A field of a document stands under 0, one of a map under the map's own number: `address.city` is looked up as
// `address` under 0 and `city` under its number. So a walk over a document needs no path, and a number stands for one
// path in one database, whatever the collection. A name too long for a key is cut as ids are.
//
// Numbers are given in the order in which commits that succeed bring new fields, and are stored among the keys of these
// commits; recovery walks the same documents in the same order and gives the same numbers. They are never taken back.

package import Basics
internal import DocumentModel
package import Storage
package import StorageEngines
internal import StoreFormat

/// Gives the numbers of fields.
package protocol FieldNumbering: ~Copyable {
    /// The number of a field.
    ///
    /// - Parameter parent: the number of the map that holds it; 0 for a field of the document.
    mutating func number(of name: RawSpan, under parent: UInt64, database: UInt32) throws(StorageError) -> UInt64
}

/// The commit thread's view of the numbers: a field without one is given the next.
package struct FieldNumbers: FieldNumbering, ~Copyable {
    private let latest: LatestReader
    /// Dictionary keys without the space byte, to positions in `numbers`.
    private var positions = ByteTable()
    /// 0 where none is given yet.
    private var numbers: [UInt64] = []
    /// Positions numbered by the commit being made.
    private var numbered: [Int] = []
    private var nextNumber: UInt64?
    private var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
    private var value = ByteBuffer(capacity: 16)

    /// Numbers kept in memory between commits.
    private static let cachedMax = 65_536

    package init(latest: LatestReader) {
        self.latest = latest
    }

    /// The number of a field, which is given now if it has none.
    ///
    /// - Parameters:
    ///   - name: one segment of the field's path, UTF-8.
    ///   - parent: the number of the map that the field is in; 0 at the top of a document.
    /// - Throws: `corrupt`, `inputOutput`.
    package mutating func number(
        of name: RawSpan, under parent: UInt64, database: UInt32
    ) throws(StorageError) -> UInt64 {
        let position = try position(of: name, under: parent, database: database)
        if numbers[position] != 0 { return numbers[position] }
        let number = try next()
        nextNumber = number + 1
        numbers[position] = number
        numbered.append(position)
        return number
    }

    /// The commit came to nothing.
    package mutating func rollBackCommit() {
        for position in numbered { numbers[position] = 0 }
        if let number = nextNumber { nextNumber = number - UInt64(numbered.count) }
        endCommit()
    }

    /// The commit is staged, with what `writeChanges` put.
    package mutating func keepCommit() { endCommit() }

    /// Empties the cache when it has become large.
    private mutating func endCommit() {
        if !numbered.isEmpty { numbered.removeAll(keepingCapacity: true) }
        if numbers.count <= FieldNumbers.cachedMax { return }
        numbers.removeAll()
        positions.removeAll()
    }

    /// Puts every number that was given for the commit being made.
    package mutating func writeChanges(into batch: inout MutationBatch) {
        guard let nextNumber, !numbered.isEmpty else { return }
        for position in numbered {
            key.reset()
            key.append(byte: KeySpace.fields.rawValue)
            positions.appendKey(at: position, to: &key)
            put(numbers[position], into: &batch)
        }
        FieldNumbers.writeCounterKey(into: &key)
        put(nextNumber, into: &batch)
    }

    private mutating func put(_ number: UInt64, into batch: inout MutationBatch) {
        value.reset()
        value.appendVarint(number)
        batch.put(key: key.bytes, value: value.bytes)
    }

    private mutating func position(
        of name: RawSpan, under parent: UInt64, database: UInt32
    ) throws(StorageError) -> Int {
        FieldNumbers.writeKey(name, under: parent, database: database, into: &key)
        return try FieldNumbers.position(of: key, in: &positions, &numbers, latest)
    }

    private static func position(
        of key: borrowing ByteBuffer, in positions: inout ByteTable, _ numbers: inout [UInt64], _ latest: LatestReader
    ) throws(StorageError) -> Int {
        let lookup = key.bytes.extracting(1..<key.count)
        let hash = ByteTable.hash(lookup)
        if let known = positions.value(of: lookup, hash: hash) { return known }
        let number = try stored(key.bytes, latest) ?? 0
        let position = numbers.count
        positions.set(lookup, hash: hash, to: position)
        numbers.append(number)
        return position
    }

    private mutating func next() throws(StorageError) -> UInt64 {
        if let nextNumber { return nextNumber }
        FieldNumbers.writeCounterKey(into: &key)
        return try FieldNumbers.stored(key.bytes, latest) ?? 1
    }

    private static func stored(_ key: RawSpan, _ latest: LatestReader) throws(StorageError) -> UInt64? {
        guard let stored = try latest.value(forKey: key) else { return nil }
        return try read(stored.bytes)
    }

    // MARK: Layout

    /// Writes a dictionary key into an empty writer.
    package static func writeKey(_ name: RawSpan, under parent: UInt64, database: UInt32, into writer: inout ByteBuffer)
    {
        writer.reset()
        writer.append(byte: KeySpace.fields.rawValue)
        writer.append(bigEndian: database)
        writer.appendVarint(parent)
        writer.append(name)
        writer.cutKeyPart(from: KeyLayout.pathOffset)
    }

    static func writeCounterKey(into writer: inout ByteBuffer) {
        writer.reset()
        writer.append(byte: KeySpace.meta.rawValue)
        writer.append(byte: UInt8(ascii: "f"))
    }

    /// The number in a stored value.
    /// - Throws: `corrupt`.
    package static func read(_ value: RawSpan) throws(StorageError) -> UInt64 {
        var reader = WireReader(value)
        guard let number = try? reader.varint(), number > 0 else {
            throw StorageError(.corrupt, "the number of a field cannot be read")
        }
        return number
    }
}
