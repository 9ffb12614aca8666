// What must hold for any bytes in the files of a managed export: shared by the fuzzer and by the test that replays its
// saved corpus.

import Basics
import DocumentModel
import ManagedExport

enum ManagedExportCheck {
    private static let database = try! DatabaseName(project: "p")

    /// Treats the bytes as a log of entities, as an entity and as metadata; returns the property that they break, or
    /// nil.
    ///
    /// The properties: nothing traps; the records before a damage are those of a log that is written with them; a valid
    /// document is written as an entity from which it is read again, byte for byte; so are the parts of an export.
    static func violation(_ bytes: [UInt8]) -> String? {
        log(bytes) ?? entity(bytes).map { "entity: \($0)" } ?? metadata(bytes.byteSpan)
    }

    private static func log(_ bytes: [UInt8]) -> String? {
        var reader = LevelDBLogReader(bytes)
        let records = reader.records().records
        var writer = LevelDBLogWriter()
        var output = ByteBuffer()
        for record in records { writer.append(record.byteSpan, to: &output) }
        var again = LevelDBLogReader(output.copyBytes())
        let (read, damage) = again.records()
        if let damage { return "log: it is written damaged: \(damage)" }
        if read != records { return "log: its records are written otherwise" }
        return records.lazy.compactMap(entity).first.map { "record: \($0)" }
    }

    private static func entity(_ bytes: [UInt8]) -> String? {
        guard let (path, fields) = read(bytes) else { return nil }
        let name = Array("\(database.documentsRoot)/".utf8) + path
        guard let result = try? DocumentValidator.validate(fields: fields.byteSpan),
            let view = try? ResourceNameView(name.byteSpan), view.isDocument
        else { return nil }
        guard result.isCanonical else { return "its fields are not canonical" }
        var output = ByteBuffer()
        do {
            try EntityWriter(database: database).append(path: path.byteSpan, fields: fields.byteSpan, to: &output)
        } catch {
            return "a valid document is not written: \(error)"
        }
        guard let again = read(output.copyBytes()) else { return "a written entity is not read" }
        if again.path != path { return "the path is written otherwise: \(path) \(again.path)" }
        return again.fields == fields ? nil : "the fields are written otherwise"
    }

    private static func read(_ entity: [UInt8]) -> (path: [UInt8], fields: [UInt8])? {
        var reader = EntityReader(database: database, mapsReferences: true)
        var fields = ByteBuffer()
        guard let path = try? reader.read(entity.byteSpan, into: &fields) else { return nil }
        return (path, fields.copyBytes())
    }

    private static func metadata(_ bytes: RawSpan) -> String? {
        if let files = try? PartMetadata.files(bytes) {
            let written = PartMetadata.bytes(name: "", start: 0, end: 0, files: files)
            if (try? PartMetadata.files(written.byteSpan)) != files { return "metadata: files are written otherwise" }
        }
        guard let parts = try? OverallMetadata.parts(bytes) else { return nil }
        var log = LevelDBLogReader(OverallMetadata.bytes(parts))
        // The first record is a version.
        guard let message = log.records().records.dropFirst().first else { return "metadata: a record is missing" }
        let read = try? OverallMetadata.parts(message.byteSpan)
        return read == parts ? nil : "metadata: parts are written otherwise"
    }
}

extension LevelDBLogReader {
    /// Reads a log in memory.
    init(_ bytes: [UInt8], from offset: Int = 0) {
        self.init(from: offset) { (offset, count) throws(LogDamage) in Array(bytes.dropFirst(offset).prefix(count)) }
    }

    /// The records to the end, or to the damage.
    mutating func records() -> (records: [[UInt8]], damage: LogDamage?) {
        var records: [[UInt8]] = []
        do throws(LogDamage) {
            while true {
                var record = ByteBuffer()
                guard try next(into: &record) else { return (records, nil) }
                records.append(record.copyBytes())
            }
        } catch {
            return (records, error)
        }
    }
}
