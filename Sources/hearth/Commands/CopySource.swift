import EmbeddedEngine
import FileSystem

/// What `hearth backup` and `hearth fork` copy: a data directory, or the stores of a server that has several.
enum CopySource {
    private static func hasStores(_ directory: String) -> Bool {
        Directory.exists("\(directory)/\(CompanionFiles.storesFolder)")
    }

    /// - Throws: a `CommandFailure` if there is nothing to copy.
    static func check(_ directory: String) throws {
        if !hasStores(directory) { try PathWords.checkDataDirectory(directory) }
    }

    /// - Throws: a `CommandFailure` for several stores, which are copied by the server that has them open.
    static func checkUnserved(_ directory: String) throws {
        guard hasStores(directory) else { return }
        throw CommandFailure(
            "no server runs on \(directory), which has several stores of a cluster: copy them one by one from "
                + "\(directory)/\(CompanionFiles.storesFolder)")
    }
}
