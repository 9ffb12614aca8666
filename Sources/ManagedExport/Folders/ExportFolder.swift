// Finding the files of an export in a folder.

internal import Basics
internal import DocumentJSON
internal import DocumentModel
internal import FileSystem
internal import Glibc
internal import Storage

/// A folder that is not a managed export, or not one that can be read or written.
package struct ExportFolderProblem: Error, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// The data files of an export.
package struct ExportFolder: Sendable {
    /// A log of entities.
    package struct DataFile: Equatable, Sendable {
        package let path: String
        /// The path below the folder of the export, for messages.
        package let name: String
        package let byteCount: Int
    }

    /// In the order of their metadata.
    package private(set) var files: [DataFile] = []
    /// Entities of all files by the metadata.
    package private(set) var entities = 0
    /// Names of data files that the metadata does not list. They are among the files.
    package private(set) var unlisted: [String] = []

    package var byteCount: Int { files.reduce(0) { $0 + $1.byteCount } }

    /// The file that the firebase program writes above the folder of an export.
    static let firebaseName = "firebase-export-metadata.json"
    static let overallSuffix = ".overall_export_metadata"
    private static let metadataBytesMax = 64 << 20

    /// Finds the files of an export.
    ///
    /// - Parameter path: a folder with `firebase-export-metadata.json`, the folder with the overall metadata, a folder
    ///   with one such folder, or the overall metadata file.
    package init(_ path: String) throws(ExportFolderProblem) {
        let overall = try Self.overallFile(path)
        let root = Directory.parent(of: overall)
        for part in try Self.parts(of: overall) {
            let metadata = "\(root)/\(try Self.checked(part.path, in: overall))"
            let folder = Directory.parent(of: metadata)
            var names = try Self.names(listedIn: metadata)
            let listed = Set(names)
            for name in Self.dataFiles(in: folder) where !listed.contains(name) {
                unlisted.append("\(folder.dropFirst(root.count + 1))/\(name)")
                names.append(name)
            }
            for name in names {
                let file = "\(folder)/\(name)"
                let status = Directory.status(of: file)
                guard status.isRegularFile else {
                    throw ExportFolderProblem("the export is not complete: there is no \(file)")
                }
                files.append(
                    DataFile(
                        path: file, name: String(file.dropFirst(root.count + 1)), byteCount: status.byteCount))
            }
            let (sum, overflow) = entities.addingReportingOverflow(part.entities)
            entities = overflow ? .max : sum
        }
    }

    /// Refuses an export of which entities are missing: a data file that was cut short after a record has no damage.
    ///
    /// - Parameter found: entities of all files.
    package func checkComplete(_ found: Int) throws(ExportFolderProblem) {
        if found >= entities { return }
        throw ExportFolderProblem(
            "the export is not complete: its metadata counts \(entities) entities, and its files have \(found)")
    }

    // MARK: Metadata

    private static func overallFile(_ path: String) throws(ExportFolderProblem) -> String {
        let status = Directory.status(of: path)
        if status.isRegularFile { return path }
        guard status.isDirectory else { throw ExportFolderProblem("there is no \(path)") }
        if Directory.exists("\(path)/\(firebaseName)") { return try firebaseFile(in: path) }
        if let file = try overallFile(in: path) { return file }
        var found: [String] = []
        for name in try names(in: path) where Directory.status(of: "\(path)/\(name)").isDirectory {
            if let file = try overallFile(in: "\(path)/\(name)") { found.append(file) }
        }
        if found.count == 1 { return found[0] }
        let reason =
            found.isEmpty
            ? "it has no file NAME\(overallSuffix), which an export has when it is complete"
            : "it has several exports; name one of \(found.joined(separator: ", "))"
        throw ExportFolderProblem("\(path) is not a managed export: \(reason)")
    }

    /// The overall metadata in a folder; nil if there is none.
    private static func overallFile(in folder: String) throws(ExportFolderProblem) -> String? {
        let found = try names(in: folder).filter { $0.hasSuffix(overallSuffix) }
        if found.count > 1 {
            throw ExportFolderProblem("\(folder) has several exports; name one of \(found.joined(separator: ", "))")
        }
        return found.first.map { "\(folder)/\($0)" }
    }

    private static func firebaseFile(in folder: String) throws(ExportFolderProblem) -> String {
        let file = "\(folder)/\(firebaseName)"
        let text = try contents(of: file)
        do throws(JSONObject.Mistake) {
            guard let firestore = try JSONObject(text).object("firestore"),
                let metadata = try firestore.string("metadata_file")
            else { throw JSONObject.Mistake("it has no firestore.metadata_file") }
            let path = "\(folder)/\(try checkedPath(metadata))"
            guard Directory.exists(path) else { throw JSONObject.Mistake("there is no \(path)") }
            return path
        } catch {
            throw ExportFolderProblem("\(file) cannot be used: \(error)")
        }
    }

    private static func parts(of overall: String) throws(ExportFolderProblem) -> [OverallMetadata.Part] {
        let bytes = try contents(of: overall)
        var reader = LevelDBLogReader { (offset, count) throws(LogDamage) in
            Array(bytes.dropFirst(offset).prefix(count))
        }
        var version = ByteBuffer()
        var message = ByteBuffer()
        do {
            guard try reader.next(into: &version), try reader.next(into: &message) else {
                throw ExportFolderProblem("it ends too early")
            }
            let parts = try OverallMetadata.parts(message.bytes)
            if parts.contains(where: { $0.entities < 0 }) { throw ExportFolderProblem("a number is negative") }
            return parts
        } catch {
            throw ExportFolderProblem("\(overall) is damaged: \(error)")
        }
    }

    /// The data files that a part's metadata lists.
    private static func names(listedIn metadata: String) throws(ExportFolderProblem) -> [String] {
        let bytes = try contents(of: metadata)
        let names: [String]
        do throws(InvalidDocument) {
            names = try PartMetadata.files(bytes.byteSpan)
        } catch {
            throw ExportFolderProblem("\(metadata) is damaged: \(error)")
        }
        for name in names where try checked(name, in: metadata).contains("/") {
            throw ExportFolderProblem("\(metadata) names the file \(name.prefix(200)), which is in another folder")
        }
        return names
    }

    // MARK: Files

    /// Refuses a path that leads out of the folder of the export.
    private static func checked(_ path: String, in file: String) throws(ExportFolderProblem) -> String {
        do throws(JSONObject.Mistake) {
            return try checkedPath(path)
        } catch {
            throw ExportFolderProblem("\(file) cannot be used: \(error)")
        }
    }

    private static func checkedPath(_ path: String) throws(JSONObject.Mistake) -> String {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard !parts.contains(where: { ["", ".", ".."].contains($0) }), !path.utf8.contains(0) else {
            throw JSONObject.Mistake("\"\(path.prefix(200))\" is not a path within the export")
        }
        return path
    }

    /// Names of the form `output-N` in a folder, by number.
    private static func dataFiles(in folder: String) -> [String] {
        let names = (try? Directory.names(in: folder)) ?? []
        let numbered = names.compactMap { name -> (number: Int, name: String)? in
            guard name.hasPrefix("output-"), let number = Int(name.dropFirst(7)) else { return nil }
            return (number, name)
        }
        return numbered.sorted { $0.number < $1.number }.map(\.name)
    }

    private static func names(in folder: String) throws(ExportFolderProblem) -> [String] {
        do throws(StorageError) {
            return try Directory.names(in: folder)
        } catch {
            throw ExportFolderProblem("\(error)")
        }
    }

    private static func contents(of path: String) throws(ExportFolderProblem) -> [UInt8] {
        do throws(StorageError) {
            let file = try File(path, flags: O_RDONLY)
            let count = try file.byteCount()
            if count > metadataBytesMax {
                throw StorageError(.inputOutput, "it has more than \(metadataBytesMax >> 20) MiB", file: path)
            }
            return try file.bytes(at: 0, count: count)
        } catch {
            throw ExportFolderProblem("\(path) cannot be read: \(error)")
        }
    }
}

extension File {
    /// Reads up to so many bytes; fewer at the end of the file alone.
    func bytes(at offset: Int, count: Int) throws(StorageError) -> [UInt8] {
        let buffer = HeapBuffer(capacity: max(count, 1))
        let all = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.all[..<count])
        let read = unsafe try read(into: all, at: offset)
        return unsafe [UInt8](UnsafeRawBufferPointer(rebasing: all[..<read]))
    }
}

extension LevelDBLogReader {
    /// Reads the log in a file.
    ///
    /// - Parameter offset: 0, or the ``offset`` of an earlier reader of the same file.
    /// - Throws: `LogDamage` if the file cannot be opened.
    package init(file path: String, from offset: Int = 0) throws(LogDamage) {
        let file: File
        do throws(StorageError) {
            file = try File(path, flags: O_RDONLY)
        } catch {
            throw LogDamage(.unreadable("\(error)"), offset: 0)
        }
        self.init(from: offset) { (offset, count) throws(LogDamage) in
            do throws(StorageError) {
                return try file.bytes(at: offset, count: count)
            } catch {
                throw LogDamage(.unreadable("\(error)"), offset: offset)
            }
        }
    }
}
