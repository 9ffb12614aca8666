internal import FileSystem
internal import Storage

extension KeySet {
    /// Reads a file of keys, or all files of a directory. Names that begin with a dot, as editors and mounts make them,
    /// are passed over.
    ///
    /// - Parameter path: the identifier of a PEM key is its file's name without the ending.
    /// - Throws: `KeyFault` that names the file.
    package static func read(_ path: String) throws(KeyFault) -> KeySet {
        var builder = KeySetBuilder()
        for file in try files(path) {
            let name = file.split(separator: "/").last.map { String($0) } ?? file
            let stem = name.lastIndex(of: ".").map { String(name[..<$0]) } ?? name
            let text = try text(of: file)
            do throws(KeyFault) {
                try builder.add(text: text, name: stem)
            } catch {
                throw KeyFault("\(file): \(error)")
            }
        }
        return try builder.finished()
    }

    /// Reads the text of a response.
    package static func read(text: [UInt8]) throws(KeyFault) -> KeySet {
        var builder = KeySetBuilder()
        try builder.add(text: text, name: "key")
        return try builder.finished()
    }

    private static func files(_ path: String) throws(KeyFault) -> [String] {
        guard Directory.status(of: path).isDirectory else { return [path] }
        do throws(StorageError) {
            return try Directory.names(in: path).filter { !$0.hasPrefix(".") }.map { "\(path)/\($0)" }
        } catch {
            throw KeyFault("\(error)")
        }
    }

    private static func text(of file: String) throws(KeyFault) -> [UInt8] {
        do throws(StorageError) {
            return try SmallFile.read(file, bytesMax: KeyLimits.fileBytesMax)
        } catch {
            throw KeyFault("\(error)")
        }
    }
}
