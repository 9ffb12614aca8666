// What takes the documents of an export.

import Basics
import DocumentJSON
import DocumentModel
import Glibc
import HearthClient
import ManagedExport

/// Takes the documents of an export, page by page.
protocol ExportOutput: AnyObject {
    /// Writes a page.
    ///
    /// - Returns: how many bytes it became.
    func write(_ page: [NamedDocument]) throws -> Int
    /// The last page was written.
    func finish() throws
}

/// Writes bytes to standard output, or to a file, which takes the place of another one when it is complete.
struct ExportBytes {
    private let file: ReplacingFile?

    init(_ path: String?) throws {
        if let path { ReplacingFile.removeAbandoned(of: path) }
        file = try path.map { try ReplacingFile($0) }
    }

    func write(_ bytes: [UInt8]) throws {
        if let file { try file.write(bytes) } else { try StandardOutput.write(bytes) }
    }

    /// Everything has been written.
    func finish() throws {
        if let file { try file.finish() } else { try StandardOutput.flush() }
    }
}

/// Documents as JSON lines.
final class LineOutput: ExportOutput {
    private let output: ExportBytes
    /// What names begin with that is not a part of `__name__`.
    private let prefix: String
    private var writer: JSONLineWriter

    /// - Parameter database: references within it are written relative.
    init(_ output: ExportBytes, prefix: String, database: String) {
        self.output = output
        self.prefix = prefix
        writer = JSONLineWriter(database: database)
    }

    func write(_ page: [NamedDocument]) throws -> Int {
        var lines: [UInt8] = []
        for document in page {
            let name = document.name.dropping(prefix: prefix)
            lines += try writer.line(name: name, fields: document.content.fields.span.bytes)
            lines.append(0x0A)
        }
        try output.write(lines)
        return lines.count
    }

    func finish() throws { try output.finish() }
}

/// Documents as entities of a managed export.
final class ManagedOutput: ExportOutput {
    private let writer: ExportFolderWriter
    private let prefixBytes: Int

    /// - Parameter path: the folder, which must not exist.
    init(_ path: String, database: DatabaseName) throws {
        try ExportFolderWriter.checkTarget(path, mayReplace: false)
        writer = try ExportFolderWriter(
            path, database: database, start: Int64(clamping: SystemClock.microseconds()))
        prefixBytes = database.documentsRoot.utf8.count + 1
    }

    func write(_ page: [NamedDocument]) throws -> Int {
        let before = writer.byteCount
        for document in page {
            try document.name.withUTF8Span { name in
                try writer.append(
                    path: name.extracting(prefixBytes..<name.byteCount), fields: document.content.fields.byteSpan)
            }
        }
        return writer.byteCount - before
    }

    func finish() throws { try writer.finish() }
}
