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

    /// Makes sure that this process finds the copy that a server has written: a service may have another directory at
    /// the same path, which is removed when the service ends.
    static func checkIsHere(_ target: String) throws(CommandFailure) {
        if let names = try? Directory.names(in: target), !names.isEmpty { return }
        throw CommandFailure(
            "the server has written the copy to a directory that it alone sees as \(target): systemd gives services "
                + "their own /tmp (PrivateTmp). Name a place that both see")
    }

    /// - Throws: a `CommandFailure` for several stores, which are copied by the server that has them open.
    static func checkUnserved(_ directory: String) throws {
        guard hasStores(directory) else { return }
        throw CommandFailure(
            "no server runs on \(directory), which has several stores of a cluster: copy them one by one from "
                + "\(directory)/\(CompanionFiles.storesFolder)")
    }
}
