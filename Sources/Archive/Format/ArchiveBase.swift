internal import Basics
internal import FileSystem
internal import Glibc
package import Storage

/// What a base consists of: its file BASE, which is written when all others are durable.
///
///     magic "HARABAS1", format, number, identity (high, low), time line, version, horizon, time of writing,
///     number of files                                                       8 bytes each
///     per file: length of the path, bytes, XXH3-64 (8 bytes each); the path
///     XXH3-64 of everything before
package struct ArchiveBase: Equatable, Sendable {
    /// A file of a base.
    package struct Part: Equatable, Sendable {
        /// In the base and in a data directory, for example `runs/MANIFEST`.
        package var path: String
        package var byteCount: Int
        var sum: UInt64
    }

    package var number: UInt64
    var owner: ArchiveOwner
    /// All commits up to here are in the base, and none after it.
    package var version: CommitVersion
    /// History superseded up to here is not in it.
    package var horizon: CommitVersion
    /// When it was written, in microseconds since 1970.
    package var written: UInt64
    package var parts: [Part]

    /// The base of an archive that has all commits since its store was new. It has version 0 and no files.
    static func empty(of owner: ArchiveOwner) -> ArchiveBase {
        ArchiveBase(number: 0, owner: owner, version: .zero, horizon: .zero, written: 0, parts: [])
    }

    /// Whether it is the one without files.
    package var isEmpty: Bool { number == 0 }

    package var byteCount: Int { parts.reduce(0) { $0 + $1.byteCount } }

    private static let format: UInt64 = 1
    private static let byteCountMax = 1 << 30

    init(
        number: UInt64, owner: ArchiveOwner, version: CommitVersion, horizon: CommitVersion, written: UInt64,
        parts: [Part]
    ) {
        self.number = number
        self.owner = owner
        self.version = version
        self.horizon = horizon
        self.written = written
        self.parts = parts
    }

    var encoded: [UInt8] {
        var bytes = ByteBuffer()
        let words = [
            ArchiveFormat.baseMagic, Self.format, number, owner.store.high, owner.store.low,
            owner.timeline.microseconds, version.microseconds, horizon.microseconds, written, UInt64(parts.count),
        ]
        for word in words { bytes.append(littleEndian: word) }
        for part in parts {
            bytes.append(littleEndian: UInt64(part.path.utf8.count))
            bytes.append(littleEndian: UInt64(part.byteCount))
            bytes.append(littleEndian: part.sum)
            bytes.append(utf8: part.path)
        }
        let sum = ArchiveFiles.sum(bytes.bytes)
        bytes.append(littleEndian: sum)
        return bytes.copyBytes()
    }

    /// Nil if the bytes are not those of a whole file BASE of this format.
    init?(_ bytes: [UInt8]) {
        let span = bytes.byteSpan
        var offset = 0
        let end = bytes.count - 8
        func word(at offset: Int) -> UInt64 {
            UInt64(littleEndian: unsafe span.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        func word() -> UInt64? {
            guard end - offset >= 8 else { return nil }
            defer { offset += 8 }
            return word(at: offset)
        }
        guard end >= 80, word(at: end) == ArchiveFiles.sum(span.extracting(0..<end)),
            word() == ArchiveFormat.baseMagic, word() == Self.format, let number = word(), let high = word(),
            let low = word(), let timeline = word(), let version = word(), let horizon = word(), let written = word(),
            let count = word()
        else { return nil }
        var parts: [Part] = []
        for _ in 0..<count {
            guard let length = word().flatMap({ Int(exactly: $0) }),
                let byteCount = word().flatMap({ Int(exactly: $0) }), let sum = word(), length <= end - offset
            else { return nil }
            let path = String(decoding: bytes[offset..<(offset + length)], as: UTF8.self)
            guard Self.isInside(path) else { return nil }
            offset += length
            parts.append(Part(path: path, byteCount: byteCount, sum: sum))
        }
        guard offset == end else { return nil }
        self.init(
            number: number,
            owner: ArchiveOwner(
                store: StoreIdentity(high: high, low: low), timeline: CommitVersion(microseconds: timeline)),
            version: CommitVersion(microseconds: version), horizon: CommitVersion(microseconds: horizon),
            written: written, parts: parts)
    }

    /// Whether a path names a file in a directory of the base. An archive that was changed by others must not make a
    /// restore write to another place.
    static func isInside(_ path: String) -> Bool {
        let names = path.split(separator: "/", omittingEmptySubsequences: false)
        return names.count == 2 && ["runs", "rules"].contains(names[0]) && !["", ".", ".."].contains(names[1])
            && !path.contains("\0")
    }

    /// Reads the base of an archive; nil if it is not complete.
    /// - Throws: `corrupt`, `inputOutput`.
    static func read(_ number: UInt64, in directory: String) throws(StorageError) -> ArchiveBase? {
        try read(
            in: ArchiveFormat.baseDirectory(number, in: directory), remedy: ArchiveFormat.remedy("this base"),
            number: number)
    }

    /// Reads the base in a folder; nil if it is not complete.
    ///
    /// - Parameters:
    ///   - remedy: what to do about damage.
    ///   - number: what the base must say that it is; nil for any.
    /// - Throws: `corrupt`, `inputOutput`.
    static func read(
        in folder: String, remedy: String, number: UInt64? = nil
    ) throws(StorageError) -> ArchiveBase? {
        let path = "\(folder)/\(ArchiveFormat.baseName)"
        guard try Directory.isThere(path) else { return nil }
        let bytes = try ArchiveFiles.read(path, byteCountMax: byteCountMax)
        // Without rename a process that ended may have left the beginning of the file.
        guard let base = ArchiveBase(bytes), number == nil || base.number == number else {
            throw StorageError(.corrupt, "the description of a base is damaged", file: path, remedy: remedy)
        }
        return base
    }
}
