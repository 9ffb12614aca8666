// What can go wrong in storage, as one type: a code to act on, a sentence to read, and where it happened.

package import Basics
internal import Glibc

/// A failure of the storage engine.
package struct StorageError: Error, Equatable {
    /// What the caller can do about it.
    package let code: Code

    /// What happened, in a sentence for the operator.
    package let message: String

    /// The file it happened in, and the byte offset there, where known.
    package let file: String?
    package let offset: Int?

    /// What the operator of a server can do about damage; nil for other errors.
    package let remedy: String?

    /// - Parameter remedy: what the operator can do, if that is not to restore a backup.
    package init(
        _ code: Code, _ message: String, file: String? = nil, offset: Int? = nil, remedy: String? = nil
    ) {
        self.code = code
        self.message = message
        self.file = file
        self.offset = offset
        self.remedy = remedy ?? (code == .corrupt ? "restore a backup; `hearth check` lists all damage" : nil)
    }
}

extension StorageError {
    /// What the caller can do about it.
    package struct Code: Hashable, Sendable {
        fileprivate enum Name: String {
            case corrupt, full, failed, refused, locked, unsupportedFormat, versionTooOld, versionNotIncreasing
            case keyTooLong, valueTooLong, tooManyReaders, inputOutput, closed, unsupported
            case pending, cancelled
        }

        fileprivate let name: Name

        /// Bytes on disk are not what was written. Final: restore a backup.
        package static let corrupt = Code(name: .corrupt)
        /// The disk or the map is full. The request has no effect. Reads continue, and writes resume when there is
        /// space.
        package static let full = Code(name: .full)
        /// A write or sync of the log failed. Final until a restart; the outcome of the commits that were being synced
        /// is unknown.
        package static let failed = Code(name: .failed)
        /// Commits are not accepted, at present or until a restart. This one was not written to the log: it has not
        /// been applied and will not be.
        package static let refused = Code(name: .refused)
        /// Another engine, in this process or another, has the directory open.
        package static let locked = Code(name: .locked)
        /// The directory was written by a version of the engine that this one does not know.
        package static let unsupportedFormat = Code(name: .unsupportedFormat)
        /// The history of the version asked for has been removed.
        package static let versionTooOld = Code(name: .versionTooOld)
        /// A commit came with a version not above the last one. A bug of the caller.
        package static let versionNotIncreasing = Code(name: .versionNotIncreasing)
        /// A key is empty or longer than `EngineLimits.keyBytesMax`. A bug of the caller.
        package static let keyTooLong = Code(name: .keyTooLong)
        /// A value, record or group is longer than its limit. A bug of the caller.
        package static let valueTooLong = Code(name: .valueTooLong)
        /// More readers are open than `EngineOptions.readersMax`.
        package static let tooManyReaders = Code(name: .tooManyReaders)
        /// The operating system refused an operation on a file.
        package static let inputOutput = Code(name: .inputOutput)
        /// The engine is closed.
        package static let closed = Code(name: .closed)
        /// Nothing failed: what the read needs is not in memory. See ``ColdRead/pends``.
        package static let pending = Code(name: .pending)
        /// The caller stopped it.
        package static let cancelled = Code(name: .cancelled)
        /// This engine cannot do it.
        package static let unsupported = Code(name: .unsupported)
    }
}

extension StorageError.Code: CustomStringConvertible {
    package var description: String { name.rawValue }
}

extension StorageError: CustomStringConvertible {
    /// What happened and where; damage ends with what the operator can do. The code is for programs.
    package var description: String { descriptionOfPlace + (remedy.map { ": \($0)" } ?? "") }

    /// The same without the remedy.
    package var descriptionOfPlace: String {
        guard let file else { return message }
        return "\(message) (\(file)" + (offset.map { " at byte \($0))" } ?? ")")
    }
}

extension StorageError {
    /// The answer to a read that has to wait.
    package static let pending = StorageError(.pending, "what the read needs is not in memory")

    /// Whether an `errno` says that there is no space: the disk is full, or a quota or the limit of file sizes is
    /// reached.
    package static func isFull(_ errorNumber: Int32) -> Bool {
        errorNumber == ENOSPC || errorNumber == EDQUOT || errorNumber == EFBIG
    }

    /// The error for a system call that failed: `full` when space has run out, else `inputOutput`.
    package static func system(_ errorNumber: Int32, _ what: String, file: String? = nil) -> StorageError {
        let isFull = isFull(errorNumber)
        let reason = unsafe String(cString: strerror(errorNumber))
        return StorageError(isFull ? .full : .inputOutput, "\(what): \(reason)", file: file)
    }
}

extension StorageError {
    /// The error of a commit that was not accepted because this one keeps a file from being written, which is tried
    /// again. Others, `full` among them, say that themselves.
    package var asRefusal: StorageError {
        guard code == .inputOutput || code == .corrupt else { return self }
        return StorageError(
            .refused, "commits are not accepted until files can be written again: \(message)", file: file,
            offset: offset)
    }

    /// The error of a commit that was not applied and comes with this failure, or after it. The failure is final.
    package var asFinalRefusal: StorageError {
        guard code != .refused else { return self }
        let reason = message + (remedy.map { ": \($0)" } ?? "")
        return StorageError(.refused, "commits are not accepted until a restart: \(reason)", file: file, offset: offset)
    }

    /// The error of a commit that was staged before this failure.
    package var asUnknownOutcome: StorageError { StorageError(.failed, message, file: file, offset: offset) }
}

extension SystemThread {
    /// Starts a thread of the engine.
    /// - Throws: `inputOutput` when the system has no thread left.
    package static func start(_ name: String, _ body: @escaping () -> Void) throws(StorageError) -> SystemThread {
        do throws(StartFailure) {
            return try SystemThread(name: name, body)
        } catch {
            throw .system(error.errorNumber, "cannot start the thread \(name)")
        }
    }
}
