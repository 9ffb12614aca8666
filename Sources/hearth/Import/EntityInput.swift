// The entities of a managed export as an input of the loader.

import Basics
import DocumentModel
import ManagedExport

/// A place in an export as one number: the number of its data file, and that of a record in it, from 1.
struct RecordPlace: Sendable {
    var file: Int
    var record: Int

    private static let recordBits = 40

    init(file: Int, record: Int) {
        self.file = file
        self.record = record
    }

    init(_ number: Int) {
        file = number >> Self.recordBits
        record = number & (1 << Self.recordBits - 1)
    }

    var number: Int { file << Self.recordBits | record }
}

/// Reads the data files of an export one after the other.
final class EntityInput: LoadInput {
    /// How entities become documents.
    struct Rules: Sendable {
        /// Where the documents go.
        var database: DatabaseName
        /// Whether references to documents of the exported database name those of the target.
        var mapsReferences: Bool
        /// Whether reading stops at an entity that cannot become a document.
        var stopsAtBadLine: Bool
    }

    let totalBytes: Int?
    private let folder: ExportFolder
    private let rules: Rules
    private var place: RecordPlace
    /// Bytes of the data files before the open one.
    private var fileStart = 0
    private var reader: LevelDBLogReader?
    /// Where reading begins in the open file.
    private var offset: Int

    /// Bytes of entities in a part.
    private static let partBytes = 1 << 20

    init(_ folder: ExportFolder, from start: LoadProgress, _ rules: Rules) throws(CommandFailure) {
        self.folder = folder
        self.rules = rules
        totalBytes = folder.byteCount
        place = RecordPlace(start.lines)
        guard place.file <= folder.files.count else { throw CommandFailure("the export has fewer files than before") }
        fileStart = folder.files[..<place.file].reduce(0) { $0 + $1.byteCount }
        offset = start.offset - fileStart
        guard offset >= 0 else { throw CommandFailure("the files of the export have other sizes than before") }
    }

    /// Names the record at a place.
    static func name(of number: Int, in folder: ExportFolder) -> String {
        let place = RecordPlace(number)
        let file = folder.files.indices.contains(place.file) ? folder.files[place.file].name : "the end"
        return "\(file): record \(place.record)"
    }

    func next() throws -> LoadPart? {
        while place.file < folder.files.count {
            if let part = try part() { return part }
            fileStart += folder.files[place.file].byteCount
            place = RecordPlace(file: place.file + 1, record: 0)
            reader = nil
            offset = 0
        }
        return nil
    }

    /// The next records of the open file; nil at its end.
    private func part() throws(CommandFailure) -> LoadPart? {
        var entities = ByteBuffer(capacity: Self.partBytes + Self.partBytes / 4)
        var ranges: [Range<Int>] = []
        var ends = [(offset: fileStart + offset, lines: place.number)]
        do throws(LogDamage) {
            var reader = try openReader()
            defer { self.reader = reader }
            while entities.count < Self.partBytes {
                let start = entities.count
                guard try reader.next(into: &entities) else { break }
                ranges.append(start..<entities.count)
                place.record += 1
                offset = reader.offset
                ends.append((fileStart + offset, place.number))
            }
        } catch {
            // The records before the damage are a separate part; the next call finds the damage again.
            if ranges.isEmpty {
                let name = Self.name(of: place.number + 1, in: folder)
                throw CommandFailure("\(name): \(error); the documents before it are stored")
            }
        }
        if ranges.isEmpty { return nil }
        let bytes = entities.copyBytes()
        return LoadPart(byteCount: ends[ends.count - 1].offset - ends[0].offset) { [rules, ranges, ends] in
            Self.parse(bytes, ranges, ends, rules)
        }
    }

    /// The reader of the open file.
    private func openReader() throws(LogDamage) -> LevelDBLogReader {
        if let reader { return reader }
        return try LevelDBLogReader(file: folder.files[place.file].path, from: offset)
    }

    private static func parse(
        _ bytes: [UInt8], _ ranges: [Range<Int>], _ ends: [(offset: Int, lines: Int)], _ rules: Rules
    ) -> ParsedChunk {
        let root = Array("\(rules.database.documentsRoot)/".utf8)
        var reader = EntityReader(database: rules.database, mapsReferences: rules.mapsReferences)
        var chunk = ParsedChunk(
            ends: ends, byteCount: bytes.count, pathOffset: root.count, stopsAtBadLine: rules.stopsAtBadLine
        ) { index, draft in
            let path = try reader.read(bytes.byteSpan.extracting(ranges[index]), into: &draft.fields)
            draft.name.append(root)
            draft.name.append(path)
        }
        chunk.countCollections()
        chunk.notes.add(reader.conversions)
        return chunk
    }
}

extension ParsedChunk {
    /// Counts the documents by the collections on their paths. The paths are those below the database's documents.
    fileprivate mutating func countCollections() {
        var pattern: [UInt8] = []
        var last: [UInt8] = []
        var count = 0
        for document in documents {
            let path = Int(document.path.lowerBound)..<Int(document.path.upperBound)
            pattern.removeAll(keepingCapacity: true)
            var isCollection = true
            for byte in bytes[path] {
                if byte == UInt8(ascii: "/") {
                    if isCollection { pattern.append(contentsOf: [byte, UInt8(ascii: "*"), byte]) }
                    isCollection.toggle()
                } else if isCollection {
                    pattern.append(byte)
                }
            }
            if pattern != last {
                noteCollection(last, count)
                (last, count) = (pattern, 0)
            }
            count += 1
        }
        noteCollection(last, count)
    }

    private mutating func noteCollection(_ pattern: [UInt8], _ count: Int) {
        if count > 0 { notes.count(String(decoding: pattern.dropLast(3), as: UTF8.self), count) }
    }
}
