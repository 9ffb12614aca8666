internal import FileSystem
internal import Identity
internal import SecurityRules
package import Storage

/// The security rules that a data directory keeps: each text that was applied, in a file for its owner alone.
///
///     DIR/rules/000001.rules
///     DIR/rules/000002.rules     the highest number is in force
///
/// Files are added and never changed. A file appears whole: it is written under another name, synced and renamed. A
/// process that ends at any moment leaves the rules as they were before or after the change.
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

    private let path: String

    package init(dataDirectory: String) { path = "\(dataDirectory)/rules" }

    /// The file of rules with a number.
    package func file(_ number: Int) -> String {
        let digits = String(number)
        let zeros = String(repeating: "0", count: max(Self.digitsMin - digits.utf8.count, 0))
        return "\(path)/\(zeros)\(digits)\(Self.suffix)"
    }

    /// The rules that are kept, the oldest first; at most ``entriesMax``.
    ///
    /// - Throws: `inputOutput` if the directory cannot be read.
    package func all() throws(StorageError) -> [Entry] { try numbers().suffix(Self.entriesMax).map(entry) }

    /// The number of the newest rules, which are in force; nil if there are none.
    ///
    /// - Throws: as ``all()``.
    package func newest() throws(StorageError) -> Int? { try numbers().last }

    /// The number of the rules that were in force before the newest; nil if there are none.
    ///
    /// - Throws: as ``all()``.
    package func previous() throws(StorageError) -> Int? { try numbers().dropLast().last }

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
        try Directory.create(path)
        try removeUnfinished()
        let numbers = try numbers()
        // A process that ended may have left a directory whose name is not durable.
        if numbers.isEmpty { try Directory.sync(Directory.parent(of: path)) }
        let number = max((numbers.last ?? 0) + 1, numberMin)
        let file = file(number)
        guard number <= Self.numberMax, text.utf8.count <= RulesLimits.sourceBytes else {
            throw StorageError(.inputOutput, "the rules are too long, or there are too many", file: file)
        }
        do throws(StorageError) {
            try SmallFile.replace(file, text)
        } catch {
            try? Directory.removeFile(file)
            throw error
        }
        // One that cannot be removed is removed by the next call.
        for old in numbers.dropLast(Self.entriesMax - 1) { try? Directory.removeFile(self.file(old)) }
        return entry(number)
    }

    // MARK: Files

    private static func damage(_ what: String, _ file: String) -> StorageError {
        StorageError(.corrupt, what, file: file, remedy: "apply rules again with `hearth rules apply`")
    }

    /// Removes what a process that ended has left.
    private func removeUnfinished() throws(StorageError) {
        for name in try Directory.names(in: path) where name.hasSuffix(".new") {
            try Directory.removeFile("\(path)/\(name)")
        }
    }

    /// The numbers of all rules, ascending. A directory that does not exist has none.
    private func numbers() throws(StorageError) -> [Int] {
        if Directory.status(of: path, followsLink: false).identity == nil { return [] }
        return try Directory.names(in: path).compactMap(Self.number).sorted()
    }

    /// The number in the name of a file; nil for another file.
    private static func number(_ name: String) -> Int? {
        guard name.hasSuffix(suffix) else { return nil }
        let digits = name.utf8.dropLast(suffix.utf8.count)
        guard digits.count >= digitsMin, digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            digits.count == digitsMin || digits.first != UInt8(ascii: "0"),
            let number = Int(String(decoding: digits, as: UTF8.self)), (1...numberMax).contains(number)
        else { return nil }
        return number
    }
}
