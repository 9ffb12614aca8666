internal import FileSystem
internal import Glibc
internal import Storage

/// The file of principals: JSON, for its owner alone, replaced whole.
package enum PrincipalFile {
    static let bytesMax = 8 << 20
    /// Disk space that the file keeps for the next one that takes its place, beside the bytes of its text: blocks
    /// beyond its end. They are given back when a credential is revoked on a full disk.
    private static let spareBytes = 64 << 10

    /// Reads the file.
    ///
    /// - Throws: `PrincipalFault`, also if others may read the file, or it does not exist.
    package static func read(_ path: String) throws(PrincipalFault) -> [PrincipalRecord] {
        let text: [UInt8]
        do throws(StorageError) {
            text = try SmallFile.read(path, bytesMax: bytesMax, isPrivate: true)
        } catch {
            throw PrincipalFault("\(error)")
        }
        do throws(PrincipalFault) {
            return try PrincipalRecord.readAll(text)
        } catch {
            throw PrincipalFault("\(path): \(error)")
        }
    }

    /// Changes the file, and makes it if there is none. Two processes that change it wait for each other; a reader sees
    /// the old file or the new one. A symbolic link stays, and the file that it leads to is changed.
    ///
    /// - Parameters:
    ///   - takesRights: whether the change only takes rights away: then it may use the space that the file keeps for a
    ///     full disk.
    ///   - handOver: called with the result of the change before the file is written, so that no credential is valid
    ///     whose secret is lost.
    /// - Throws: `PrincipalFault`, or what `handOver` throws; the file is as it was then.
    package static func edit<Output>(
        _ path: String, takesRights: Bool = false, handOver: (Output) throws -> Void = { _ in },
        _ change: (inout PrincipalList) throws(PrincipalFault) -> Output
    ) throws -> Output {
        let path = Directory.resolved(path)
        do {
            return try SmallFile.locked(besides: path) {
                var list = PrincipalList(Directory.exists(path) ? try read(path) : [])
                let output = try change(&list)
                // What the server would refuse is not written.
                _ = try Principals(list.records)
                try handOver(output)
                try replace(path, list.text, takesRights: takesRights)
                return output
            }
        } catch let error as StorageError {
            throw PrincipalFault("\(error)")
        }
    }

    private static func replace(_ path: String, _ text: String, takesRights: Bool) throws(StorageError) {
        let spareSpace = SpareSpace()
        if takesRights {
            spareSpace.lend { _ in (try? File(path, flags: O_WRONLY).releaseBeyondEnd()) ?? false }
        }
        let byteCount = text.utf8.count
        try spareSpace.writing(byteCount) { () throws(StorageError) in try SmallFile.replace(path, text) }
        // Without it the file is as good, until the disk is full.
        _ = try? File(path, flags: O_WRONLY).allocate(from: byteCount, to: 2 * byteCount + spareBytes)
    }
}
