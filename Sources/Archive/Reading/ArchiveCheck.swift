internal import FileSystem
package import Storage

/// Reads an archive and verifies all of its sums: what `hearth archive check` runs. Changes nothing.
package enum ArchiveCheck {
    /// - Parameter progress: gets the number of bytes read so far, on this thread.
    /// - Returns: what is wrong; empty when every version from the first base on can be restored.
    /// - Throws: `unsupportedFormat` if the directory is not an archive, `corrupt` if its file ARCHIVE is damaged,
    ///   `inputOutput`.
    package static func run(
        _ directory: String, progress: WorkProgress.Handler = { _ in }
    ) throws(StorageError) -> [StorageError] {
        let catalogue = try ArchiveCatalogue(directory)
        var problems = catalogue.problems
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
                    problems.append(error)
                }
            }
        }
        for header in catalogue.files {
            do throws(StorageError) {
                try RecordFile(header, in: directory).visit { _, _ in true }
            } catch {
                problems.append(error)
            }
            note(header.payloadBytes)
        }
        if problems.isEmpty, let first = catalogue.bases.first {
            problems += missingBases(catalogue, from: first)
        } else if problems.isEmpty {
            problems.append(
                StorageError(
                    .corrupt, "the archive has no complete base", file: directory,
                    remedy: "nothing can be restored until the server has made one"))
        }
        return problems
    }

    /// Chains to which no base leads.
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
