// The scripts of pages, run as they stand.

import Foundation
import TestSupport

enum PageScript {
    /// Runs the last block of a page that is marked as sh, with the program of this build as `hearth`.
    ///
    /// - Parameter directory: the working directory; processes that the script leaves are ended.
    static func run(_ page: String, in directory: TemporaryDirectory) throws -> HearthBinary.Outcome {
        let text = try String(contentsOfFile: Repository.url(page).path, encoding: .utf8)
        let blocks = text.components(separatedBy: "```sh\n").dropFirst()
        let block = blocks.last?.components(separatedBy: "```").first ?? "exit 1"
        let bin = directory.path(of: "bin")
        try FileManager.default.createDirectory(atPath: bin, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: "\(bin)/hearth", withDestinationPath: HearthBinary.path)
        let end = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"
        let script = "set -e\n\(end)\nPATH=\(bin):$PATH\ncd \(directory.path)\n\(block)"
        return try HearthBinary.run(["-c", script], executable: "/bin/bash")
    }
}
