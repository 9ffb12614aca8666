package import Basics

/// The writes of one request to the documents of one database, with their bytes.
///
///     bytes   | name | fields | name | fields | name | ...
///     writes    [0].name, [0].fields, [1].name, ...    ranges of `bytes`
///
/// A server reads the writes of a commit on the thread of the connection. Reading checks the names, validates documents
/// and makes them canonical, and parses masks and transforms. The commit thread gets a list that needs no further
/// checks: every name is a valid document name of `database`, and every document is valid and canonical.
///
/// A list is a value and can be passed to another thread.
package struct WriteList: Sendable {
    /// Names and canonical fields, back to back.
    package internal(set) var bytes: [UInt8] = []

    /// The writes in the order in which they apply.
    package internal(set) var writes: [Write] = []

    /// The database that every written document must belong to.
    package let database: DatabaseName

    /// How strictly names and values are checked.
    let rules: NameRules

    /// - Parameter rules: `.stored` is for writes that no request asks for, to documents that are stored already.
    package init(database: DatabaseName, rules: NameRules = .request) {
        self.database = database
        self.rules = rules
    }

    package var count: Int { writes.count }
    package var isEmpty: Bool { writes.isEmpty }

    /// Makes room for `byteCount` bytes of names and fields.
    package mutating func reserveCapacity(byteCount: Int) {
        bytes.reserveCapacity(byteCount)
    }

    /// Forgets the writes and keeps the room.
    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        writes.removeAll(keepingCapacity: true)
    }

    /// The full resource name of a write's document, UTF-8.
    @_lifetime(borrow self)
    package borrowing func name(of write: Write) -> RawSpan {
        bytes.byteSpan.extracting(write.name)
    }

    /// The path of a write's document below `documents`, UTF-8.
    @_lifetime(borrow self)
    package borrowing func path(of write: Write) -> RawSpan {
        bytes.byteSpan.extracting(write.name.lowerBound + pathOffset..<write.name.upperBound)
    }

    /// The canonical field entries of a write; empty unless it is an update.
    @_lifetime(borrow self)
    package borrowing func fields(of write: Write) -> RawSpan {
        bytes.byteSpan.extracting(write.fields)
    }

    /// Bytes of `projects/{p}/databases/{d}/documents/`, with which every name begins.
    var pathOffset: Int { database.utf8.count + 11 }

    /// The full resource name of a write's document, for messages.
    package func nameText(of write: Write) -> String {
        String(repairingUTF8: name(of: write))
    }

    // MARK: Rules over all writes

    /// Throws unless no document has more field transforms than one commit may apply to it.
    package func checkTransformLimit() throws(RequestError) {
        var total = 0
        for write in writes { total += write.transforms.count }
        if total <= Limits.transformsPerDocument { return }
        var counts: [[UInt8]: Int] = [:]
        for write in writes where !write.transforms.isEmpty {
            let name = [UInt8](copying: name(of: write))
            counts[name, default: 0] += write.transforms.count
            if counts[name, default: 0] > Limits.transformsPerDocument {
                throw WriteList.tooManyTransforms(self.name(of: write))
            }
        }
    }

    /// The first document written twice, which `BatchWrite` refuses; nil if there is none.
    package func firstRepeatedName() -> String? {
        if writes.count < 2 { return nil }
        var seen: Set<[UInt8]> = []
        for write in writes where !seen.insert([UInt8](copying: name(of: write))).inserted {
            return nameText(of: write)
        }
        return nil
    }
}
