internal import FileSystem
internal import Storage

/// The file of principals: JSON, for its owner alone, replaced whole.
package enum PrincipalFile {
    static let bytesMax = 8 << 20

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
    /// the old file or the new one.
    ///
    /// - Throws: `PrincipalFault`; the file is as it was then.
    package static func edit<Output>(
        _ path: String, _ change: (inout PrincipalList) throws(PrincipalFault) -> Output
    ) throws(PrincipalFault) -> Output {
        do {
            return try SmallFile.locked(besides: path) {
                var list = PrincipalList(Directory.exists(path) ? try read(path) : [])
                let output = try change(&list)
                // What the server would refuse is not written.
                _ = try Principals(list.records)
                try SmallFile.replace(path, list.text)
                return output
            }
        } catch let error as PrincipalFault {
            throw error
        } catch {
            throw PrincipalFault("\(error)")
        }
    }
}
