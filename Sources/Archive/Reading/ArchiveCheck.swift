internal import FileSystem
package import Storage

/// Reads an archive and verifies all of its sums: what `hearth archive check` runs. Changes nothing.
package enum ArchiveCheck {
    /// - Parameter progress: gets the number of bytes read so far, on this thread.
    /// - Returns: what is wrong; empty when every version from the first base on can be restored. What is pruned
    ///   meanwhile is not missing.
    /// - Throws: `unsupportedFormat` if the directory is not an archive, `corrupt` if its file ARCHIVE is damaged,
    ///   `inputOutput`.
    package static func run(
        _ directory: String, progress: WorkProgress.Handler = { _ in }
    ) throws(StorageError) -> [StorageError] {
        let catalogue = try ArchiveCatalogue(directory)
        /// With the base or the file of records that each concerns.
        var problems: [(place: Place, error: StorageError)] = []
        let bytes = catalogue.bases.reduce(0) { $0 + $1.byteCount } + catalogue.files.reduce(0) { $0 + $1.payloadBytes }
        var state = WorkProgress("checking", done: 0, total: bytes, .bytes)
        progress(state)
        func note(_ count: Int) {
            state.done += count
            progress(state)
        }
        for base in catalogue.bases {
            for part in base.parts {
                do throws(StorageError) {
                    unsafe try BasePart.read(part, in: ArchiveFormat.baseDirectory(base.number, in: directory)) {
                        note($0.count)
                    }
                } catch {
                    problems.append((.base(base.number), error))
                }
            }
        }
        for header in catalogue.files {
            do throws(StorageError) {
                try RecordFile(header, in: directory).visit { _, _ in true }
            } catch {
                problems.append((.records(header.number), error))
            }
            note(header.payloadBytes)
        }
        if problems.isEmpty, catalogue.problems.isEmpty { return missingBases(catalogue) }
        let now = try ArchiveCatalogue(directory)
        let lasting = problems.filter { now.has($0.place) }.map(\.error)
        return now.problems.isEmpty && lasting.isEmpty ? missingBases(now) : now.problems + lasting
    }

    /// What a problem concerns.
    enum Place {
        case base(UInt64)
        case records(UInt64)
    }

    private static func missingBases(_ catalogue: ArchiveCatalogue) -> [StorageError] {
        if let first = catalogue.bases.first { return missingBases(catalogue, from: first) }
        return [
            StorageError(
                .corrupt, "the archive has no complete base", file: catalogue.directory,
                remedy: "nothing can be restored until the server has made one")
        ]
    }

    /// - Returns: chains to which no base leads.
    private static func missingBases(_ catalogue: ArchiveCatalogue, from first: ArchiveBase) -> [StorageError] {
        catalogue.chains.compactMap { chain in
            let isReached = catalogue.bases.contains { $0.version >= chain.after && $0.version <= chain.last }
            // Chains before the first base are what a prune leaves.
            if isReached || chain.last <= first.version { return nil }
            return StorageError(
                .corrupt, "no base leads to the commits from version \(chain.after) to \(chain.last)",
                file: catalogue.directory, remedy: "a server that writes to the archive makes a base by itself")
        }
    }
}

extension ArchiveCatalogue {
    /// Whether the archive has a base, or a file of records; false for one that was pruned.
    fileprivate func has(_ place: ArchiveCheck.Place) -> Bool {
        switch place {
        case .base(let number): bases.contains { $0.number == number }
        case .records(let number): files.contains { $0.number == number }
        }
    }
}
