package import FileSystem
internal import Identity
internal import SecurityRules
package import Storage

/// The security rules that a data directory keeps: each text that was applied, in a file for its owner alone.
///
///     DIR/rules/000001.rules
///     DIR/rules/000002.rules     the highest number is in force
///     DIR/rules/000002.newest    says that rules with this number were applied, and has the number of those before
///
/// Files are added and never changed. A file appears whole: it is written under another name, synced and renamed. A
/// process that ends at any moment leaves the rules as they were before or after the change.
///
/// Rules are *missing* if the name of a `.newest` has a higher number than all texts: then no older text is taken for
/// the newest. The number is in a name, so a copy that is made while rules are applied never has a note without its
/// text.
///
/// One caller at a time may append: it has the lock of the data directory.
package struct RulesHistory: Sendable {
    /// Rules that are kept.
    package struct Entry: Equatable, Sendable {
        /// From 1 on, each higher than those before.
        package let number: Int
        /// When they were applied, in microseconds since 1970.
        package let time: Int64
        package let byteCount: Int
    }

    /// Texts that are kept; an older one is removed.
    package static let entriesMax = 100
    private static let numberMax = 999_999_999
    private static let digitsMin = 6
    private static let suffix = ".rules"
    private static let noteSuffix = ".newest"

    private let path: String
    private let spareSpace: SpareSpace

    /// - Parameter spareSpace: for rules that are applied on a full disk.
    package init(dataDirectory: String, spareSpace: SpareSpace = SpareSpace()) {
        path = "\(dataDirectory)/rules"
        self.spareSpace = spareSpace
    }

    /// The file of rules with a number.
    package func file(_ number: Int) -> String { file(number, Self.suffix) }

    private func noteFile(_ number: Int) -> String { file(number, Self.noteSuffix) }

    private func file(_ number: Int, _ suffix: String) -> String {
        let digits = String(number)
        let zeros = String(repeating: "0", count: max(Self.digitsMin - digits.utf8.count, 0))
        return "\(path)/\(zeros)\(digits)\(suffix)"
    }

    /// The rules that are kept, the oldest first; at most ``entriesMax``.
    ///
    /// - Throws: `inputOutput` if the directory cannot be read.
    package func all() throws(StorageError) -> [Entry] { try numbers().suffix(Self.entriesMax).map(entry) }

    /// The number of the newest rules, which are in force; nil if there are none.
    ///
    /// - Throws: `corrupt` if they are missing, and as ``all()``.
    package func newest() throws(StorageError) -> Int? {
        // Another process may add a text and its note meanwhile.
        let noted = try notes().last
        let newest = try numbers().last
        if let noted, noted > newest ?? 0 { throw Self.missing(file(noted)) }
        return newest
    }

    /// The highest number that rules have or had; 0 if there never were any.
    ///
    /// - Throws: as ``all()``.
    package func highest() throws(StorageError) -> Int { max(try numbers().last ?? 0, try notes().last ?? 0) }

    /// The number of the rules that were in force before the newest; nil if there are none.
    ///
    /// - Throws: `corrupt` if they are missing, and as ``all()``.
    package func previous() throws(StorageError) -> Int? {
        let highest = try highest()
        let previous = try numbers().last { $0 < highest }
        // Numbers may be left out where several servers apply rules, so a gap alone says nothing.
        if let noted = notedPrevious(highest), noted > previous ?? 0 {
            throw Self.damage("the rules before the newest are missing", file(noted))
        }
        return previous
    }

    /// The number of the rules before those with a number, as it was noted with these; nil if that is not known.
    private func notedPrevious(_ number: Int) -> Int? {
        guard let bytes = try? SmallFile.read(noteFile(number), bytesMax: 64) else { return nil }
        let words = String(decoding: bytes, as: UTF8.self).split { $0 == " " || $0 == "\n" }
        return words.count == 2 ? Int(words[1]) : nil
    }

    /// The text of the rules with a number. It is not compiled.
    ///
    /// - Throws: `corrupt` if the file is not one of this type, `inputOutput` if it is too long or cannot be read.
    package func text(_ number: Int) throws(StorageError) -> String {
        let file = file(number)
        if Directory.exists(file), !Directory.status(of: file).isRegularFile {
            throw Self.damage("rules are not a regular file", file)
        }
        let bytes = try SmallFile.read(file, bytesMax: RulesLimits.sourceBytes)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Self.damage("rules are not UTF-8", file)
        }
        return text
    }

    /// What is known about the rules with a number, which exist.
    package func entry(_ number: Int) -> Entry {
        let status = Directory.status(of: file(number))
        return Entry(number: number, time: status.modified, byteCount: status.byteCount)
    }

    /// Adds a text as the newest, durably, and removes the oldest ones beyond ``entriesMax``. The text is not compiled.
    ///
    /// - Parameter numberMin: the lowest number that the text may get.
    /// - Throws: `full`, `inputOutput`. The text is removed then. If the disk fails at that too, the text may be there
    ///   after a restart.
    package func append(_ text: String, numberMin: Int = 1) throws(StorageError) -> Entry {
        try spareSpace.writing(0) { () throws(StorageError) in try Directory.create(path) }
        try removeUnfinished()
        let numbers = try numbers()
        // A process that ended may have left a directory whose name is not durable.
        if numbers.isEmpty { try Directory.sync(Directory.parent(of: path)) }
        // Those that are missing cannot be noted: no later text would end that.
        let previous = (try? newest()) ?? nil
        let number = max(try highest() + 1, numberMin)
        let file = file(number)
        guard number <= Self.numberMax, text.utf8.count <= RulesLimits.sourceBytes else {
            throw StorageError(.inputOutput, "the rules are too long, or there are too many", file: file)
        }
        do throws(StorageError) {
            try write(text, to: file)
            try note(number, after: previous)
        } catch {
            // A note without its text would keep the server from starting.
            if (try? Directory.removeFile(noteFile(number))) != nil { try? Directory.removeFile(file) }
            throw error
        }
        // One that cannot be removed is removed by the next call.
        for old in numbers.dropLast(Self.entriesMax - 1) { try? Directory.removeFile(self.file(old)) }
        for old in (try? notes()) ?? [] where old < number { try? Directory.removeFile(noteFile(old)) }
        return entry(number)
    }

    /// Removes the texts from this copy of `original` that cannot be read there, and notes that rules were applied, so
    /// that no older text comes into force instead of one that is missing.
    ///
    /// - Returns: what of the original is missing or cannot be read.
    /// - Throws: `full`, `inputOutput`.
    package func removeUnreadable(of original: RulesHistory) throws(StorageError) -> [StorageError] {
        let (numbers, highest) = (try original.numbers(), try original.highest())
        if highest == 0 { return [] }
        try note(highest)
        var problems: [StorageError] = []
        if numbers.last != highest { problems.append(Self.missing(original.file(highest))) }
        for number in numbers {
            do throws(StorageError) {
                _ = try original.text(number)
            } catch {
                problems.append(error)
                try Directory.removeFile(file(number))
            }
        }
        try Directory.sync(path)
        return problems
    }

    /// Notes that there were rules, in a directory without any: a server does not start on it before others are
    /// applied.
    ///
    /// - Throws: `full`, `inputOutput`.
    package func noteMissing() throws(StorageError) { try note(1) }

    /// Makes a note, and the directory if there is none.
    ///
    /// - Parameter previous: the number of the rules before; nil if there are none that are known.
    private func note(_ number: Int, after previous: Int? = nil) throws(StorageError) {
        try Directory.create(path)
        try write("\(number)\(previous.map { " \($0)" } ?? "")\n", to: noteFile(number))
    }

    private func write(_ text: String, to file: String) throws(StorageError) {
        try spareSpace.writing(text.utf8.count) { () throws(StorageError) in try SmallFile.replace(file, text) }
    }

    // MARK: Files

    private static func damage(_ what: String, _ file: String) -> StorageError {
        StorageError(.corrupt, what, file: file, remedy: "apply rules again with `hearth rules apply`")
    }

    private static func missing(_ file: String) -> StorageError { damage("the newest rules are missing", file) }

    /// Removes what a process that ended has left.
    private func removeUnfinished() throws(StorageError) {
        for name in try Directory.names(in: path) where name.hasSuffix(".new") {
            try Directory.removeFile("\(path)/\(name)")
        }
    }

    /// The numbers of all rules, ascending. A directory that does not exist has none.
    private func numbers() throws(StorageError) -> [Int] { try numbers(inNamesWith: Self.suffix) }

    /// The numbers that are noted, ascending: one, or more after a process has ended.
    private func notes() throws(StorageError) -> [Int] { try numbers(inNamesWith: Self.noteSuffix) }

    private func numbers(inNamesWith suffix: String) throws(StorageError) -> [Int] {
        if Directory.status(of: path, followsLink: false).identity == nil { return [] }
        return try Directory.names(in: path).compactMap { Self.number($0, suffix) }.sorted()
    }

    /// The number in the name of a file; nil for another file.
    private static func number(_ name: String, _ suffix: String) -> Int? {
        guard name.hasSuffix(suffix) else { return nil }
        let digits = name.utf8.dropLast(suffix.utf8.count)
        guard digits.count >= digitsMin, digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            digits.count == digitsMin || digits.first != UInt8(ascii: "0"),
            let number = Int(String(decoding: digits, as: UTF8.self)), (1...numberMax).contains(number)
        else { return nil }
        return number
    }
}
