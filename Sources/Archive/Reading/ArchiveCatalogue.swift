// What an archive has, by the headers of its files.

internal import Basics
internal import FileSystem
internal import Glibc
package import Storage

/// The bases and the files of records of an archive at one moment.
package struct ArchiveCatalogue: Sendable {
    /// Files of records that follow each other without a gap.
    package struct Chain: Sendable {
        package var files: [RecordHeader]

        /// The version after which it begins, and that of its last record.
        package var after: CommitVersion { files.first?.after ?? .zero }
        package var last: CommitVersion { files.last?.last ?? .zero }
    }

    package let directory: String
    package let owner: ArchiveOwner
    /// Complete bases, ascending by number and so by version. The first one is empty if the archive has all commits
    /// since the store was new.
    package private(set) var bases: [ArchiveBase] = []
    /// In the order of their numbers.
    package private(set) var chains: [Chain] = []
    /// What is wrong, by the headers alone.
    package private(set) var problems: [StorageError] = []
    /// Why commits after the last file of records that can be used may be missing; nil if that is the last one.
    private var damageAtEnd: StorageError?
    /// Numbers of bases that are being written, or were when a process ended.
    private(set) var unfinishedBases: [UInt64] = []
    /// Numbers of all bases, complete, damaged or not, ascending.
    private(set) var baseNumbers: [UInt64] = []
    /// The last file of records, if it is not complete: it was being written when a process ended.
    private(set) var unfinishedRecords: UInt64?
    /// Numbers of all files of records, damaged or not, ascending.
    private(set) var recordNumbers: [UInt64] = []

    /// - Throws: `unsupportedFormat` if the directory is not an archive, `corrupt`, `inputOutput`.
    package init(_ directory: String) throws(StorageError) {
        self.directory = directory
        guard let owner = try ArchiveOwner.read(in: directory) else {
            throw StorageError(.unsupportedFormat, "not an archive: it has no ARCHIVE file", file: directory)
        }
        self.owner = owner
        try readBases()
        try readRecords()
        if chains.first?.after == .zero, chains.first?.files.first?.number == 1 {
            bases.insert(.empty(of: owner), at: 0)
        }
    }

    package var files: [RecordHeader] { chains.flatMap(\.files) }

    /// The highest number of a file of records; 0 without any.
    var lastNumber: UInt64 { recordNumbers.last ?? 0 }

    /// The last commit that can be restored; nil if none can.
    package var lastVersion: CommitVersion? {
        guard let first = bases.first else { return nil }
        return max(bases.map(\.version).max() ?? first.version, chains.last?.last ?? .zero)
    }

    /// - Throws: `corrupt` if commits after ``lastVersion`` may be in a file that is damaged or missing.
    package func checkEnd() throws(StorageError) {
        if let damageAtEnd { throw damageAtEnd }
    }

    /// What to say about the last file of records if it is not complete: without its commits an archive looks like one
    /// that ends earlier.
    package var unfinishedNote: String? {
        unfinishedRecords.map {
            "\(ArchiveFormat.recordFile($0, in: directory)) is not complete, and commits after version "
                + "\(lastVersion ?? .zero) are missing: a server writes it at present or was killed meanwhile, or "
                + "the file was cut short"
        }
    }

    private mutating func readBases() throws(StorageError) {
        let place = "\(directory)/\(ArchiveFormat.basesName)"
        guard Directory.exists(place) else { return }
        baseNumbers = try Directory.names(in: place).compactMap { ArchiveFormat.number($0) }
        for number in baseNumbers {
            do throws(StorageError) {
                guard let base = try ArchiveBase.read(number, in: directory) else {
                    unfinishedBases.append(number)
                    continue
                }
                try check(base.owner, "\(ArchiveFormat.baseDirectory(number, in: directory))/\(ArchiveFormat.baseName)")
                bases.append(base)
            } catch {
                problems.append(error)
            }
        }
    }

    private mutating func readRecords() throws(StorageError) {
        let place = "\(directory)/\(ArchiveFormat.recordsName)"
        guard Directory.exists(place) else { return }
        recordNumbers = try Directory.names(in: place).compactMap {
            ArchiveFormat.number($0, suffix: ArchiveFormat.recordsSuffix)
        }
        var previous: UInt64?
        for number in recordNumbers {
            if let previous, number != previous + 1 { noteMissing(previous + 1) }
            previous = number
            do throws(StorageError) {
                guard let header = try header(number, isLast: number == lastNumber) else {
                    unfinishedRecords = number
                    continue
                }
                try append(header)
                damageAtEnd = nil
            } catch {
                note(error)
            }
        }
        chains.removeAll(where: \.files.isEmpty)
    }

    /// Notes that a file of records is damaged or missing.
    private mutating func note(_ damage: StorageError) {
        problems.append(damage)
        damageAtEnd = damage
        breakChain()
    }

    /// What follows is in another chain.
    private mutating func breakChain() { chains.append(Chain(files: [])) }

    private mutating func noteMissing(_ number: UInt64) {
        let path = ArchiveFormat.recordFile(number, in: directory)
        note(
            StorageError(
                .corrupt, "a file of records is missing", file: path, remedy: ArchiveFormat.remedy("this file")))
    }

    /// Adds a file to its chain.
    private mutating func append(_ header: RecordHeader) throws(StorageError) {
        let path = ArchiveFormat.recordFile(header.number, in: directory)
        try check(header.owner, path)
        guard header.last > header.after, header.recordCount > 0 else {
            throw StorageError(
                .corrupt, "a file of records has no records", file: path, remedy: ArchiveFormat.remedy("this file"))
        }
        if header.previousSum == 0 || chains.isEmpty { breakChain() }
        if let before = chains[chains.count - 1].files.last,
            header.previousSum != before.sum || header.after != before.last
        {
            throw StorageError(
                .corrupt, "a file of records does not follow the one before it", file: path,
                remedy: ArchiveFormat.remedy("this file"))
        }
        chains[chains.count - 1].files.append(header)
    }

    /// - Throws: `corrupt` if a file is of another store or another time line.
    private func check(_ owner: ArchiveOwner, _ path: String) throws(StorageError) {
        guard owner != self.owner else { return }
        throw StorageError(
            .corrupt, "the file is of another store: \(owner.store), the archive is of \(self.owner.store)", file: path,
            remedy: ArchiveFormat.remedy("this file"))
    }

    /// Reads a header; nil if the file is the last one and was not written completely.
    private func header(_ number: UInt64, isLast: Bool) throws(StorageError) -> RecordHeader? {
        let path = ArchiveFormat.recordFile(number, in: directory)
        let file = try File(path, flags: O_RDONLY)
        let byteCount = try file.byteCount()
        let buffer = HeapBuffer(capacity: RecordHeader.byteCount)
        let read = unsafe try file.read(into: buffer.all, at: 0)
        let header = unsafe RecordHeader(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(buffer.all)))
        if read < RecordHeader.byteCount || byteCount < header?.fileBytes ?? 0 {
            if isLast { return nil }
            throw StorageError(
                .corrupt, "a file of records has been cut short: it has \(byteCount) bytes", file: path,
                remedy: ArchiveFormat.remedy("this file"))
        }
        guard let header, header.number == number, byteCount == header.fileBytes else {
            throw StorageError(
                .corrupt, "the header of a file of records is damaged", file: path,
                remedy: ArchiveFormat.remedy("this file"))
        }
        return header
    }
}

// MARK: - What leads to a version

extension ArchiveCatalogue {
    /// A base, and the files of records with what comes after it.
    package struct Route: Sendable {
        package var base: ArchiveBase
        package var files: [RecordHeader]
    }

    /// Whether a file that a route needs is not in the archive any more: it was pruned.
    func lacksPart(of route: Route) -> Bool {
        let numbers = Set(files.map(\.number))
        return !bases.contains { $0.number == route.base.number }
            || route.files.contains { !numbers.contains($0.number) }
    }

    /// The newest base that is not after a version, and the files of records up to there.
    /// - Throws: `versionTooOld` if the archive begins later, ends earlier, or has a gap there; `corrupt` if a damaged
    ///   file is in the way.
    package func route(to version: CommitVersion) throws(StorageError) -> Route {
        guard let base = bases.last(where: { $0.version <= version }) else {
            if let problem = problems.first { throw problem }
            let begin = bases.first.map { "begins with version \($0.version)" } ?? "has no complete base"
            throw StorageError(.versionTooOld, "the archive \(begin)", file: directory)
        }
        if base.version == version { return Route(base: base, files: []) }
        for chain in chains.reversed() where chain.after <= base.version && chain.last >= version {
            let files = chain.files.filter { $0.last > base.version && $0.after < version }
            return Route(base: base, files: files)
        }
        if let problem = problems.first(where: { $0.file?.hasSuffix(ArchiveFormat.recordsSuffix) == true }) {
            throw problem
        }
        let end = max(chains.filter { $0.after <= base.version }.map(\.last).max() ?? base.version, base.version)
        throw StorageError(
            .versionTooOld, "the archive has no commits between versions \(end) and \(version)", file: directory,
            remedy: "the last state before that is restored with --version \(end)")
    }
}
