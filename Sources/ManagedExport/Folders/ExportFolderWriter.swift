// Writing an export: a new folder, which gets its name when it is complete.
//
//     DIR/firebase-export-metadata.json                                     read by the firebase program
//     DIR/firestore_export/firestore_export.overall_export_metadata         read by gcloud and the emulator
//     DIR/firestore_export/all_namespaces/all_kinds/all_namespaces_all_kinds.export_metadata
//     DIR/firestore_export/all_namespaces/all_kinds/output-0
//
// Without the first file, the others are in DIR itself, and the name of DIR is in the place of `firestore_export`.

internal import Basics
package import DocumentModel
internal import FileSystem
internal import Glibc
internal import Storage

/// Writes the documents of one database. Used once, on one thread at a time.
///
/// Until ``finish()`` the files are in a folder with another name beside that of the export, which the process has
/// locked (flock(2)). What a process has left that was killed is removed when the next export of this name begins.
/// Memory is bounded by a part of the file and a document.
package final class ExportFolderWriter {
    /// Documents so far.
    package private(set) var documents = 0
    /// Bytes of the data file so far.
    package var byteCount: Int { log.byteCount }

    private let path: String
    private let temporary: String
    private let lock: File
    /// The name of the export in its metadata.
    private let name: String
    private let hasFirebaseFile: Bool
    /// The folder of the overall metadata.
    private var root: String { hasFirebaseFile ? "\(temporary)/\(name)" : temporary }
    private let file: File
    private let start: Int64
    private let writer: EntityWriter
    private var log = LevelDBLogWriter()
    private var entity = ByteBuffer(capacity: 64 << 10)
    private var output = ByteBuffer(capacity: ExportFolderWriter.bufferBytes + (64 << 10))
    private var written = 0
    private var isFinished = false

    private static let firebaseFolder = "firestore_export"
    private static let partFolder = "all_namespaces/all_kinds"
    private static let partFile = "all_namespaces/all_kinds/all_namespaces_all_kinds.export_metadata"
    private static let dataFile = "output-0"
    private static let bufferBytes = 1 << 20

    /// Makes the temporary folder.
    ///
    /// - Parameters:
    ///   - path: the folder of the export. See ``checkTarget(_:mayReplace:)``.
    ///   - database: where the documents are.
    ///   - start: the time, in microseconds since 1970.
    ///   - hasFirebaseFile: whether the folder is one that the firebase program reads.
    package init(
        _ path: String, database: DatabaseName, start: Int64, hasFirebaseFile: Bool = true
    ) throws(ExportFolderProblem) {
        let path = Directory.resolved(path)
        self.path = path
        self.start = start
        self.hasFirebaseFile = hasFirebaseFile
        name = hasFirebaseFile ? Self.firebaseFolder : String(path.split(separator: "/").last ?? "export")
        writer = EntityWriter(database: database)
        (temporary, lock) = try Self.makeTemporary(path)
        let root = hasFirebaseFile ? "\(temporary)/\(name)" : temporary
        do throws(StorageError) {
            let folder = "\(root)/\(Self.partFolder)"
            try Directory.create(folder)
            file = try File("\(folder)/\(Self.dataFile)", flags: O_WRONLY | O_CREAT | O_EXCL)
        } catch {
            try? Directory.removeAll(temporary)
            throw ExportFolderProblem("\(error)")
        }
    }

    /// An export that is not finished leaves nothing.
    deinit {
        if !isFinished { try? Directory.removeAll(temporary) }
    }

    /// Adds a document.
    ///
    /// - Parameters:
    ///   - path: its path below `documents`.
    ///   - fields: canonical document bytes.
    package func append(path: RawSpan, fields: RawSpan) throws(ExportFolderProblem) {
        entity.reset(keeping: 1 << 20)
        do throws(InvalidDocument) {
            try writer.append(path: path, fields: fields, to: &entity)
        } catch {
            throw ExportFolderProblem("\(String(repairingUTF8: path)) cannot be exported: \(error)")
        }
        if entity.count > LogFragment.recordBytesMax {
            throw ExportFolderProblem(
                "\(String(repairingUTF8: path)) cannot be exported: its entity has more than "
                    + "\(LogFragment.recordBytesMax >> 20) MiB")
        }
        log.append(entity.bytes, to: &output)
        documents += 1
        if output.count >= Self.bufferBytes { try flush() }
    }

    /// Writes what is left and the metadata, makes everything durable, and gives the folder its name.
    ///
    /// - Parameter mayReplace: whether an export that has the name is replaced.
    package func finish(mayReplace: Bool = false) throws(ExportFolderProblem) {
        try flush()
        do throws(StorageError) {
            try file.syncData()
            let part = OverallMetadata.Part(path: Self.partFile, entities: documents, byteCount: log.byteCount)
            try Self.write(OverallMetadata.bytes([part]), to: "\(root)/\(name)\(ExportFolder.overallSuffix)")
            let metadata = PartMetadata.bytes(
                name: name, start: start, end: Int64(clamping: SystemClock.microseconds()), files: [Self.dataFile])
            try Self.write(metadata, to: "\(root)/\(Self.partFile)")
            if hasFirebaseFile {
                try Self.write(Array(Self.firebaseText.utf8), to: "\(temporary)/\(ExportFolder.firebaseName)")
            }
            for folder in ["\(root)/\(Self.partFolder)", "\(root)/all_namespaces", root, temporary] {
                try Directory.sync(folder)
            }
        } catch {
            throw ExportFolderProblem("\(error)")
        }
        try Self.checkTarget(path, mayReplace: mayReplace)
        try takeName()
    }

    private func takeName() throws(ExportFolderProblem) {
        do throws(StorageError) {
            if !Directory.exists(path) {
                try Directory.rename(temporary, to: path)
                isFinished = true
                try Directory.syncName(of: path)
            } else if try Directory.exchange(temporary, path) {
                // At no moment is there no export.
                isFinished = true
                try Directory.syncName(of: path)
                try Directory.removeAll(temporary)
            } else {
                try replace()
            }
        } catch {
            throw ExportFolderProblem("\(error)")
        }
    }

    private static let temporaryMark = ".incomplete-"
    private static let previousMark = "-previous"

    /// Takes the place of the present folder on a file system that cannot exchange names: for a moment there is none.
    /// ``completeReplacement(of:)`` gives the name after a process that has ended then.
    private func replace() throws(StorageError) {
        let previous = temporary + Self.previousMark
        try Directory.rename(path, to: previous)
        do throws(StorageError) {
            try Directory.rename(temporary, to: path)
        } catch {
            try? Directory.rename(previous, to: path)
            throw error
        }
        isFinished = true
        try Directory.syncName(of: path)
        try Directory.removeAll(previous)
    }

    /// Gives an export its name if a process has ended while it replaced it, and nothing has the name.
    package static func completeReplacement(of path: String) throws(ExportFolderProblem) {
        if Directory.exists(path) { return }
        guard let last = path.split(separator: "/").last else { return }
        let (parent, mark) = (Directory.parent(of: path), last + temporaryMark)
        do throws(StorageError) {
            guard Directory.exists(parent) else { return }
            let previous = try Directory.names(in: parent).filter { $0.hasPrefix(mark) && $0.hasSuffix(previousMark) }
            guard let left = previous.first, previous.count == 1 else { return }
            // The new one was complete before the present one lost the name.
            let new = "\(parent)/\(left.dropLast(previousMark.count))"
            try Directory.rename(Directory.exists(new) ? new : "\(parent)/\(left)", to: path)
            try Directory.syncName(of: path)
            try Directory.removeAll("\(parent)/\(left)")
        } catch {
            throw ExportFolderProblem("\(error)")
        }
    }

    /// Refuses a target that this program must not replace: a folder that holds anything but an export, or a file.
    ///
    /// - Parameter mayReplace: whether an export may be there.
    package static func checkTarget(_ path: String, mayReplace: Bool) throws(ExportFolderProblem) {
        guard Directory.status(of: path, followsLink: false).identity != nil else { return }
        guard Directory.status(of: path, followsLink: false).isDirectory else {
            throw ExportFolderProblem("\(path) exists and is not a folder")
        }
        let names: [String]
        do throws(StorageError) {
            names = try Directory.names(in: path)
        } catch {
            throw ExportFolderProblem("\(error)")
        }
        if names.isEmpty { return }
        guard mayReplace else { throw ExportFolderProblem("\(path) exists; name a new folder") }
        let others = names.filter { $0 != ExportFolder.firebaseName && $0 != firebaseFolder }
        guard others.isEmpty, names.contains(firebaseFolder) else {
            throw ExportFolderProblem(
                "\(path) is not replaced, because it holds more than an export of documents: "
                    + (others.first ?? "it has no folder \(firebaseFolder)"))
        }
    }

    private func flush() throws(ExportFolderProblem) {
        do throws(StorageError) {
            // The buffer is not changed meanwhile.
            try unsafe file.write(UnsafeRawBufferPointer(start: output.base, count: output.count), at: written)
        } catch {
            throw ExportFolderProblem("\(error)")
        }
        written += output.count
        output.reset(keeping: 4 * Self.bufferBytes)
    }

    private static func write(_ bytes: [UInt8], to path: String) throws(StorageError) {
        let file = try File(path, flags: O_WRONLY | O_CREAT | O_EXCL)
        let buffer = HeapBuffer(capacity: max(bytes.count, 1))
        unsafe buffer.all.copyBytes(from: bytes)
        try unsafe file.write(UnsafeRawBufferPointer(rebasing: buffer.all[..<bytes.count]), at: 0)
        try file.syncData()
    }

    /// Makes a folder beside that of the export, and locks it.
    private static func makeTemporary(_ path: String) throws(ExportFolderProblem) -> (String, File) {
        do throws(StorageError) {
            try Directory.create(Directory.parent(of: path))
            removeAbandoned(of: path)
            while true {
                let folder = try makeFolder("\(path)\(temporaryMark)")
                // Another process may have taken it for an abandoned one before it was locked.
                if let lock = try locked(folder) { return (folder, lock) }
            }
        } catch {
            throw ExportFolderProblem("\(error)")
        }
    }

    /// Makes a folder whose name begins so.
    private static func makeFolder(_ start: String) throws(StorageError) -> String {
        var template = Array("\(start)XXXXXX".utf8CString)
        let made = unsafe template.withUnsafeMutableBufferPointer { buffer -> String? in
            guard let start = buffer.baseAddress, let made = unsafe mkdtemp(start) else { return nil }
            return unsafe String(cString: made)
        }
        guard let made else { throw .system(errno, "cannot make a folder", file: "\(start)XXXXXX") }
        return made
    }

    /// Locks a folder that was made. Where the file system has no locks, nobody takes it for an abandoned one.
    /// - Returns: nil if it is not there any more.
    private static func locked(_ folder: String) throws(StorageError) -> File? {
        do throws(StorageError) {
            let lock = try File(folder, flags: O_RDONLY)
            _ = try? lock.tryLock()
            return Directory.exists(folder) ? lock : nil
        } catch {
            try? Directory.removeAll(folder)
            throw error
        }
    }

    /// Removes what processes of this user have left of exports that were killed. What ``replace()`` has left stays.
    private static func removeAbandoned(of path: String) {
        let (parent, mark) = (Directory.parent(of: path), path + temporaryMark)
        let names = (try? Directory.names(in: parent)) ?? []
        let folders = names.map { parent == "/" ? "/\($0)" : "\(parent)/\($0)" }
        for folder in folders where folder.hasPrefix(mark) && folder.utf8.count == mark.utf8.count + 6 {
            let status = Directory.status(of: folder, followsLink: false)
            guard status.isDirectory, status.owner == geteuid(), !folders.contains(folder + previousMark),
                let lock = try? File(folder, flags: O_RDONLY), (try? lock.tryLock()) == true
            else { continue }
            try? Directory.removeAll(folder)
        }
    }

    /// What the firebase program expects above the folder of the documents.
    private static var firebaseText: String {
        """
        {
          "version": "13.0.0",
          "firestore": {
            "version": "1.19.0",
            "path": "\(firebaseFolder)",
            "metadata_file": "\(firebaseFolder)/\(firebaseFolder)\(ExportFolder.overallSuffix)"
          }
        }

        """
    }
}
