// The metadata files of a managed export. The official emulator's files have this form; that the fields of files repeat
// is not confirmed for exports of the cloud.

internal import Basics
package import DocumentModel

/// `NAME.overall_export_metadata`: a log of two records, a version and a message.
package enum OverallMetadata {
    /// One part of an export: a metadata file and what its data files hold together.
    package struct Part: Equatable, Sendable {
        /// The path of the part's metadata file, relative to the folder of the overall file.
        package var path: String
        package var entities: Int
        package var byteCount: Int

        package init(path: String, entities: Int, byteCount: Int) {
            self.path = path
            self.entities = entities
            self.byteCount = byteCount
        }
    }

    /// The first record.
    private static let version: [UInt8] = [0x33]

    /// The bytes of the file.
    package static func bytes(_ parts: [Part]) -> [UInt8] {
        var message = ByteBuffer()
        for part in parts {
            message.withLengthPrefix(field: OverallField.part) { message in
                message.withLengthPrefix(field: OverallField.numbers) { numbers in
                    numbers.appendField(1, int64: 2)
                    numbers.appendField(3, int64: 3)
                }
                message.appendField(OverallField.path, string: part.path)
                message.appendField(OverallField.entities, int64: Int64(part.entities))
                message.appendField(OverallField.byteCount, int64: Int64(part.byteCount))
            }
        }
        var log = LevelDBLogWriter()
        var output = ByteBuffer()
        log.append(version.byteSpan, to: &output)
        log.append(message.bytes, to: &output)
        return output.copyBytes()
    }

    /// Reads the message of the second record.
    package static func parts(_ message: RawSpan) throws(InvalidDocument) -> [Part] {
        var parts: [Part] = []
        var reader = WireReader(message)
        while let tag = try reader.nextTag() {
            guard tag == WireTag(field: OverallField.part, .lengthDelimited) else {
                try reader.skipField(tag)
                continue
            }
            var fields = try reader.message(tag)
            var part = Part(path: "", entities: 0, byteCount: 0)
            while let field = try fields.nextTag() {
                switch field.fieldNumber {
                case OverallField.path: part.path = try fields.string(field)
                case OverallField.entities: part.entities = Int(try fields.int64(field))
                case OverallField.byteCount: part.byteCount = Int(try fields.int64(field))
                default: try fields.skipField(field)
                }
            }
            parts.append(part)
        }
        return parts
    }
}

/// `....export_metadata`: one message, which names the data files of a part.
package enum PartMetadata {
    /// The bytes of the file.
    ///
    /// - Parameters:
    ///   - start: when the export began, in microseconds since 1970.
    ///   - end: when it ended.
    package static func bytes(name: String, start: Int64, end: Int64, files: [String]) -> [UInt8] {
        var message = ByteBuffer()
        message.withLengthPrefix(field: PartField.export) { message in
            message.appendField(PartField.name, string: name)
            message.appendField(PartField.start, int64: start)
            message.appendField(PartField.end, int64: end)
        }
        for file in files {
            message.withLengthPrefix(field: PartField.file) { message in
                message.appendField(PartField.fileNamespace, string: "")
                message.appendField(PartField.fileName, string: file)
            }
        }
        return message.copyBytes()
    }

    /// The names of the data files.
    package static func files(_ message: RawSpan) throws(InvalidDocument) -> [String] {
        var files: [String] = []
        var reader = WireReader(message)
        while let tag = try reader.nextTag() {
            guard tag == WireTag(field: PartField.file, .lengthDelimited) else {
                try reader.skipField(tag)
                continue
            }
            var fields = try reader.message(tag)
            while let field = try fields.nextTag() {
                if field == WireTag(field: PartField.fileName, .lengthDelimited) {
                    files.append(try fields.string(field))
                } else {
                    try fields.skipField(field)
                }
            }
        }
        return files
    }
}
