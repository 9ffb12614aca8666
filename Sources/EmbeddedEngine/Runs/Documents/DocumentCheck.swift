internal import Basics
internal import FileSystem
internal import Storage

/// Compares an LMDB file as liblmdb reads it with the entries that the engine's own reader finds.
enum DocumentCheck {
    /// Notes what is wrong with a file whose pages have been verified: an entry that liblmdb does not have, has in
    /// another place or with another value, or a value whose checksum is wrong.
    /// - Throws: `corrupt`, `inputOutput`.
    static func run(_ file: RunFile, _ report: inout EngineCheck.Report) throws(StorageError) {
        guard let documents = file.part.documents else { return }
        let copy = try VerifiedCopy(of: file, documents)
        var slice = unsafe RunSlice(
            part: file.part, lowerBound: UnsafeRawBufferPointer(start: nil, count: 0),
            highestKey: file.part.highestKey)
        let result = unsafe withUnsafePointer(to: &slice) { pointer -> Result<[String], StorageError> in
            do throws(StorageError) {
                return .success(unsafe try compare(copy, file.path, RunSlices(start: pointer, count: 1), documents.map))
            } catch {
                return .failure(error)
            }
        }
        for problem in try result.get() { report.note("\(file.path): \(problem)") }
    }

    private static func compare(
        _ copy: VerifiedCopy, _ path: String, _ slices: RunSlices, _ map: DocumentMap
    ) throws(StorageError) -> [String] {
        var source = MergeSource(slices)
        defer { source.release() }
        try source.start()
        var problems: [String] = []
        var failure: StorageError?
        unsafe try LMDBReader.forEach(copy.path, name: path) { key, data in
            guard source.isAtEntry, unsafe isSame(key, data, source, map) else {
                unsafe problems.append("liblmdb finds \(RunCheck.hex(key)) where there is another entry")
                return false
            }
            let summed = unsafe UnsafeRawBufferPointer(rebasing: data[DocumentFormat.versionOffset...])
            let sum = unsafe UInt32(littleEndian: data.loadUnaligned(as: UInt32.self))
            if unsafe DocumentFormat.sum(key, summed) != sum {
                unsafe problems.append("the checksum in the value of \(RunCheck.hex(key)) is wrong")
            }
            do throws(StorageError) { try source.next() } catch { failure = error }
            return failure == nil
        }
        if let failure { throw failure }
        if problems.isEmpty, source.isAtEntry {
            problems.append("liblmdb does not find \(unsafe RunCheck.hex(source.key))")
        }
        return problems
    }

    private static func isSame(
        _ key: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer, _ source: MergeSource, _ map: DocumentMap
    ) -> Bool {
        guard key.count > 0, data.count >= DocumentFormat.headerBytes else { return false }
        let (name, keyVersion) = unsafe map.split(key)
        let version = unsafe UInt64(
            littleEndian: data.loadUnaligned(fromByteOffset: DocumentFormat.versionOffset, as: UInt64.self))
        guard unsafe compareBytes(name, source.key) == 0, version == source.version, (keyVersion ?? version) == version
        else { return false }
        let contents = unsafe UnsafeRawBufferPointer(rebasing: data[DocumentFormat.headerBytes...])
        guard let value = unsafe source.value else {
            return unsafe data[DocumentFormat.kindOffset] == 0 && contents.isEmpty
        }
        return unsafe data[DocumentFormat.kindOffset] == 1 && compareBytes(contents, value) == 0
    }
}
