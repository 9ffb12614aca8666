// Databases and their numbers.
//
//     01 | 'd' | projects/{p}/databases/{d}, <= 248    ->    | number, 4 | the full name |
//     01 | 's' | number, 4                             ->    settings, see `DatabaseSettings`
//     01 | 'o' | number, 4                             ->    the right to it, see `DatabaseTenure`
//
// A database comes into being with its first document, or when it is created. Its number is part of every key, in place
// of its long name. Names longer than a key's part are cut as paths are. The version of the first key is when the
// database was created.
//
// A name always keeps its number, also after the database was deleted. A database that comes into being again has the
// same number, and a new key with a new version.
//
// All names are in memory, those of deleted databases too. What they may take has a bound, since clients choose them.

package import Basics
package import DocumentModel
internal import Storage
internal import StoreFormat
internal import Synchronization

/// All databases of the store. Thread-safe.
///
/// A commit, or a transaction that reads what is not there yet, needs the number of a database before the database
/// is stored. Such a number is set aside as long as there is a claim to it, and then forgotten if nothing was
/// stored. No other database gets it before a restart.
final class DatabaseDirectory: Sendable {
    /// What is known of a name.
    struct Entry {
        let number: UInt32
        var isStored = false
        /// Claims to a number that is set aside; without a meaning once the database is stored.
        var claims = 0
        /// The version with which the database came into being, in microseconds; 0 if it is not stored.
        var createMicroseconds: UInt64 = 0
        /// Nil for a database that came into being with its first document.
        var settings: DatabaseSettings?
        /// Versions at which the database is empty for readers because it was deleted, whatever is left of its
        /// documents: those of its last ``DatabaseDirectory/hiddenMax`` deletions, in their order.
        private(set) var hidden: [Range<UInt64>] = []
        /// Nil for a database that was never moved.
        var tenure: DatabaseTenure?

        /// Whether its documents are being removed.
        var isBeingDeleted: Bool { settings?.state == .deleting }
        /// Whether it is there for clients.
        var exists: Bool {
            isStored && settings?.state != .deleting && settings?.state != .deleted && !isElsewhere
        }
        /// Whether another store has it, or will have.
        var isElsewhere: Bool { tenure.map { $0.state != .owned } ?? false }
        /// Whether documents of it may be there.
        var hasCopy: Bool { isStored && settings?.state != .deleted }

        func isHidden(at version: UInt64) -> Bool { hidden.contains { $0.contains(version) } }

        /// Takes note of a deletion, once.
        /// - Returns: whether it was not known.
        mutating func hide(from version: UInt64) -> Bool {
            if hidden.last?.upperBound == .max { return false }
            hidden.append(version..<UInt64.max)
            if hidden.count > DatabaseDirectory.hiddenMax { hidden.removeFirst() }
            return true
        }

        /// Takes note that the database comes into being again.
        mutating func show(from version: UInt64) {
            guard let last = hidden.last, last.upperBound == .max else { return }
            hidden[hidden.count - 1] = last.lowerBound..<max(last.lowerBound, version)
        }

        /// Memory of the entry in the tables of a directory, in bytes, about.
        func byteCount(of name: DatabaseName) -> Int {
            DatabaseDirectory.entryBytes + name.utf8.count + (settings?.location.utf8.count ?? 0)
                + hidden.count * MemoryLayout<Range<UInt64>>.size
                + (tenure.map { $0.target.utf8.count + $0.progress.count } ?? 0)
        }
    }

    /// Memory of an entry without its texts, in bytes, about: two hash tables that have just grown.
    static let entryBytes = 640
    /// Deletions of one database that readers of earlier states may meet. Before them, a reader at a time between a
    /// deletion and the next creation finds what was left at that time, as after a restart.
    static let hiddenMax = 32

    fileprivate struct State {
        private(set) var entries: [DatabaseName: Entry] = [:]
        private(set) var names: [UInt32: DatabaseName] = [:]
        private(set) var nextNumber: UInt32 = 1
        /// Databases that are stored and not deleted, which the limit of their number counts.
        private(set) var count = 0
        /// Databases that exist.
        private(set) var existing = 0
        /// Memory of all entries, and of those that are set aside, in bytes.
        private(set) var bytes = 0
        private(set) var asideBytes = 0
        /// Numbers of the databases that are being deleted.
        var deleting: Set<UInt32> = []
        /// The stored database that was reserved last: nearly always the next one too, and found without hashing its
        /// name.
        var last: (name: DatabaseName, number: UInt32)?

        /// Replaces what is known of a name; nil forgets it.
        mutating func put(_ entry: Entry?, _ name: DatabaseName) {
            let known = entries[name]
            entries[name] = entry
            tally(known, name, -1)
            tally(entry, name, 1)
            if let entry {
                if known == nil { names[entry.number] = name }
                nextNumber = max(nextNumber, entry.number == .max ? .max : entry.number + 1)
            } else if let known {
                names[known.number] = nil
            }
        }

        /// Adds an entry to the sums, or takes it away.
        private mutating func tally(_ entry: Entry?, _ name: DatabaseName, _ sign: Int) {
            guard let entry else { return }
            let byteCount = sign * entry.byteCount(of: name)
            bytes += byteCount
            if !entry.isStored { asideBytes += byteCount }
            if entry.hasCopy { count += sign }
            if entry.exists { existing += sign }
        }
    }

    private let state = Mutex(State())
    private let maximum: Int
    private let bytesMax: Int
    private let admits: @Sendable (DatabaseName) -> Bool
    /// Increases with each deletion and each step of a move, so that numbers which readers keep are looked up again.
    private let deletions = Atomic<UInt64>(0)
    /// The version of the last deletion, in microseconds.
    private let deletedLast = Atomic<UInt64>(0)
    /// The same of the last release of a database to another store.
    private let releasedLast = Atomic<UInt64>(0)

    private let deletingCount = Atomic<Int>(0)

    /// - Parameters:
    ///   - maximum: of the number of databases.
    ///   - bytesMax: of the memory of the directory. What is stored is loaded also beyond it.
    ///   - admits: whether a database may come into being here.
    init(
        maximum: Int, bytesMax: Int = .max, admits: @escaping @Sendable (DatabaseName) -> Bool = { _ in true }
    ) {
        self.maximum = maximum
        self.bytesMax = bytesMax
        self.admits = admits
    }

    // MARK: Reading

    /// Databases that exist.
    var storedCount: Int { state.withLock { $0.existing } }

    /// Memory of what is known of all databases, the deleted ones too, in bytes, about.
    var byteCount: Int { state.withLock { $0.bytes } }

    /// The name of a number, also of a database that was deleted.
    func name(of number: UInt32) -> DatabaseName? { state.withLock { $0.names[number] } }

    /// A database's number, also of one that was deleted.
    func number(of name: DatabaseName) -> UInt32? {
        state.withLock { $0.entries[name]?.number }
    }

    /// The number of a database as a reader of a version sees it: nil if it is empty there because it was deleted.
    /// Readers may learn of a number before its first commit is visible: they find the database empty.
    ///
    /// - Returns: also the version from which on the answer is the same until ``generation`` changes; nil if there is
    ///   none.
    /// - Throws: `UNAVAILABLE` if another store has the database at this version, or will have (`isDatabaseElsewhere`);
    ///   `FAILED_PRECONDITION` for a version before the database was moved here.
    func number(
        of name: DatabaseName, at version: UInt64
    ) throws(RequestError) -> (number: UInt32?, lastingSince: UInt64?) {
        try state.withLock { (state) throws(RequestError) in
            guard let entry = state.entries[name] else { return (nil, nil) }
            var start: UInt64 = 0
            if let tenure = entry.tenure { start = try tenure.checkRead(at: version, of: name) }
            if entry.hidden.isEmpty { return (entry.number, entry.isElsewhere ? nil : start) }
            return (entry.isHidden(at: version) ? nil : entry.number, nil)
        }
    }

    /// Changes before a deletion or a step of a move becomes visible.
    var generation: UInt64 { deletions.load(ordering: .acquiring) }

    /// The version of the last deletion or release of a database, in microseconds.
    var lastEnd: UInt64 { max(deletedLast.load(ordering: .acquiring), releasedLast.load(ordering: .acquiring)) }

    /// Databases that are empty for readers since a version of this range, in microseconds.
    func deleted(after position: UInt64, through version: UInt64) -> [DatabaseName] {
        if deletedLast.load(ordering: .acquiring) <= position { return [] }
        return state.withLock { state in
            state.entries.filter { entry in
                entry.value.hidden.contains { $0.lowerBound > position && $0.lowerBound <= version }
            }.map(\.key)
        }
    }

    /// Databases that another store has since a version of this range, in microseconds.
    func released(after position: UInt64, through version: UInt64) -> [DatabaseName] {
        if releasedLast.load(ordering: .acquiring) <= position { return [] }
        return state.withLock { state in
            state.entries.filter { entry in
                guard let tenure = entry.value.tenure, tenure.state == .released else { return false }
                return tenure.version > position && tenure.version <= version
            }.map(\.key)
        }
    }

    /// Whether a database is empty for readers of a version because it was deleted.
    func isHidden(_ number: UInt32, at version: UInt64) -> Bool {
        if deletedLast.load(ordering: .acquiring) == 0 { return false }
        return state.withLock { state in
            state.names[number].flatMap { state.entries[$0] }?.isHidden(at: version) ?? false
        }
    }

    /// Why calls about a database are refused; nil unless another store has it, or will have.
    func refusal(of name: DatabaseName) -> RequestError? {
        entry(of: name)?.isElsewhere == true ? .databaseIsElsewhere(name) : nil
    }

    func entry(of name: DatabaseName) -> Entry? { state.withLock { $0.entries[name] } }

    /// All stored databases with their numbers, those that are being deleted and that were deleted too.
    var all: [(name: DatabaseName, number: UInt32)] { entries(where: \.isStored).map { ($0.name, $0.entry.number) } }

    /// All databases that exist, with their numbers.
    var existing: [(name: DatabaseName, number: UInt32)] {
        entries(where: \.exists).map { ($0.name, $0.entry.number) }
    }

    /// What is known of the databases that a condition holds for. It looks at all of them.
    func entries(where isWanted: (Entry) -> Bool) -> [(name: DatabaseName, entry: Entry)] {
        state.withLock { state in
            state.entries.compactMap { isWanted($0.value) ? (name: $0.key, entry: $0.value) : nil }
        }
    }

    /// Whether a database is being deleted.
    var isDeleting: Bool { deletingCount.load(ordering: .relaxed) > 0 }

    /// The database with the smallest number of those that are being deleted.
    var firstDeleting: (name: DatabaseName, entry: Entry)? {
        state.withLock { state in
            guard let name = state.deleting.min().flatMap({ state.names[$0] }) else { return nil }
            return state.entries[name].map { (name, $0) }
        }
    }

    // MARK: Changing

    /// A database's number, and whether the database is stored.
    struct Reservation {
        let number: UInt32
        let isStored: Bool
        /// Keeps a number that is set aside: to be held until the database is stored or the number is not used any
        /// more. Nil for a name that keeps its number anyway.
        let claim: DatabaseClaim?
    }

    /// Who needs the number of a database.
    enum NumberUse {
        case commit
        /// A transaction, which may stay open for long: all of them together set aside a quarter of the memory.
        case transaction
        /// The database comes from another store.
        case move
    }

    /// A database's number, set aside now if it has none.
    ///
    /// - Throws: `RESOURCE_EXHAUSTED` when there are too many; `FAILED_PRECONDITION` for one that is being deleted;
    ///   `UNAVAILABLE` for one that is another store's.
    func reserve(_ name: DatabaseName, for use: NumberUse = .commit) throws(RequestError) -> Reservation {
        let (number, isStored, isAside) = try state.withLock { (state) throws(RequestError) in
            if let last = state.last, last.name == name { return (last.number, true, false) }
            let known = state.entries[name]
            if use != .move, known?.exists != true, known?.isElsewhere == true || !admits(name) {
                throw .databaseIsElsewhere(name)
            }
            if known?.isBeingDeleted == true { throw .databaseIsBeingDeleted(name) }
            if known?.hasCopy != true, state.count >= maximum { throw .tooManyDatabases(maximum) }
            if let known, known.isStored {
                if known.exists { state.last = (name, known.number) }
                return (known.number, known.exists, false)
            }
            return (try setAside(name, known, for: use, &state), false, true)
        }
        return Reservation(number: number, isStored: isStored, claim: isAside ? DatabaseClaim(name, in: self) : nil)
    }

    /// Adds a claim to the number of a database that is not stored.
    /// - Parameter known: the entry of the name; nil if there is no number yet.
    private func setAside(
        _ name: DatabaseName, _ known: Entry?, for use: NumberUse, _ state: inout State
    ) throws(RequestError) -> UInt32 {
        guard var entry = known else {
            let entry = Entry(number: try state.unusedNumber(), claims: 1)
            let added = entry.byteCount(of: name)
            let isTooMuch = use == .transaction && state.asideBytes + added > bytesMax / 4
            if isTooMuch || state.bytes + added > bytesMax { throw .databasesTakeTooMuch(bytesMax) }
            state.put(entry, name)
            return entry.number
        }
        entry.claims += 1
        state.put(entry, name)
        return entry.number
    }

    /// A claim has ended. With the last one a number that is set aside is forgotten.
    fileprivate func endClaim(_ name: DatabaseName) {
        state.withLock { state in
            guard var entry = state.entries[name], !entry.isStored else { return }
            entry.claims -= 1
            // Readers that keep the number look it up again.
            if entry.claims == 0 { deletions.add(1, ordering: .releasing) }
            state.put(entry.claims > 0 ? entry : nil, name)
        }
    }

    /// Takes note that a database's keys are staged, or were found at opening.
    /// - Parameter version: of its key, in microseconds.
    func markStored(_ name: DatabaseName, number: UInt32, version: UInt64) {
        state.withLock { state in
            var entry = state.entries[name] ?? Entry(number: number)
            entry.isStored = true
            entry.createMicroseconds = version
            if entry.settings != nil {
                // It comes into being again.
                entry.settings = nil
                entry.show(from: version)
            }
            state.put(entry, name)
        }
    }

    /// Takes note that a database's settings are staged, or were found at opening.
    /// - Returns: false if no database has the number.
    @discardableResult
    func set(_ settings: DatabaseSettings, of number: UInt32) -> Bool {
        state.withLock { state in
            guard let name = state.names[number], var entry = state.entries[name] else { return false }
            entry.settings = settings
            state.deleting.remove(number)
            if settings.state != .created {
                if settings.state == .deleting { state.deleting.insert(number) }
                if state.last?.name == name { state.last = nil }
                if entry.hide(from: settings.deleteMicroseconds) {
                    deletions.add(1, ordering: .releasing)
                    deletedLast.max(settings.deleteMicroseconds, ordering: .releasing)
                }
            }
            state.put(entry, name)
            deletingCount.store(state.deleting.count, ordering: .relaxed)
            return true
        }
    }

    /// Takes note that the right to a database is staged, or was found at opening.
    /// - Returns: false if no database has the number.
    @discardableResult
    func set(_ tenure: DatabaseTenure, of number: UInt32) -> Bool {
        state.withLock { state in
            guard let name = state.names[number], var entry = state.entries[name] else { return false }
            let isProgress = entry.tenure?.state == .receiving && tenure.state == .receiving
            entry.tenure = tenure
            // Unless it was deleted here since, and came into being again.
            if tenure.createMicroseconds > 0, entry.createMicroseconds <= tenure.version {
                entry.createMicroseconds = tenure.createMicroseconds
            }
            state.put(entry, name)
            if isProgress { return true }
            if state.last?.name == name { state.last = nil }
            deletions.add(1, ordering: .releasing)
            if tenure.state == .released { releasedLast.max(tenure.version, ordering: .releasing) }
            return true
        }
    }

    /// Whether the database of a number has settings, which end when it comes into being again.
    func hasSettings(_ number: UInt32) -> Bool {
        state.withLock { state in state.names[number].flatMap { state.entries[$0]?.settings } != nil }
    }

    // MARK: Keys

    /// The first bytes of every database's key.
    static let keyPrefix: [UInt8] = [KeySpace.meta.rawValue, UInt8(ascii: "d")]
    /// The first bytes of the keys of settings.
    static let settingsPrefix: [UInt8] = [KeySpace.meta.rawValue, UInt8(ascii: "s")]

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

    /// The first bytes of the keys of rights to databases.
    static let tenurePrefix: [UInt8] = [KeySpace.meta.rawValue, UInt8(ascii: "o")]

    /// Writes the key of a database's settings into an empty writer.
    static func writeSettingsKey(of number: UInt32, into key: inout ByteBuffer) {
        key.reset()
        key.append(settingsPrefix)
        key.append(bigEndian: number)
    }

    /// Writes the key of the right to a database into an empty writer.
    static func writeTenureKey(of number: UInt32, into key: inout ByteBuffer) {
        key.reset()
        key.append(tenurePrefix)
        key.append(bigEndian: number)
    }

    /// The number in the key of a database's settings, or of the right to it; nil if it is none.
    static func number(ofSettingsKey key: RawSpan) -> UInt32? {
        guard key.byteCount == settingsPrefix.count + 4 else { return nil }
        // In bounds by the check above.
        return UInt32(bigEndian: unsafe key.unsafeLoadUnaligned(fromByteOffset: settingsPrefix.count, as: UInt32.self))
    }

    /// Reads a database's value; nil when it is none.
    static func read(value: RawSpan) -> (name: DatabaseName, number: UInt32)? {
        guard value.byteCount > 4, let name = try? DatabaseName(value.extracting(4..<value.byteCount)) else {
            return nil
        }
        // In bounds by the check above.
        return (name, value.littleEndian32(at: 0))
    }
}

extension DatabaseDirectory.State {
    /// A number that no database has had since the start.
    fileprivate func unusedNumber() throws(RequestError) -> UInt32 {
        if nextNumber < .max { return nextNumber }
        throw RequestError(.resourceExhausted, "There are no numbers for further databases. Restart the server.")
    }
}

/// Keeps the number of a database that is not stored. Thread-safe.
final class DatabaseClaim: Sendable {
    private let name: DatabaseName
    private let directory: DatabaseDirectory

    fileprivate init(_ name: DatabaseName, in directory: DatabaseDirectory) {
        self.name = name
        self.directory = directory
    }

    deinit { directory.endClaim(name) }
}

extension RequestError {
    fileprivate static func tooManyDatabases(_ maximum: Int) -> RequestError {
        RequestError(
            .resourceExhausted, "The server has reached its limit of \(maximum) databases (--max-databases).")
    }

    fileprivate static func databasesTakeTooMuch(_ bytesMax: Int) -> RequestError {
        RequestError(
            .resourceExhausted,
            """
            What is known of databases, the deleted ones too, would take more than the \(bytesMax) bytes of memory \
            that the server has for it (--max-database-bytes).
            """)
    }

    static func databaseIsElsewhere(_ name: DatabaseName) -> RequestError {
        var error = RequestError(.unavailable, "The database \(name) is not one of this store. Please try again.")
        error.isDatabaseElsewhere = true
        return error
    }

    package static func databaseIsBeingDeleted(_ name: DatabaseName) -> RequestError {
        RequestError(
            .failedPrecondition, "The database \(name) is being deleted. Write to it when that is done.")
    }
}
