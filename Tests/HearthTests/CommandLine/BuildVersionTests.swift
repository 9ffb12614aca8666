import Foundation
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20))) struct BuildVersionTests {
    @Test(arguments: [
        (true, "", "0.1.0"), (false, "", "0.1.0 (unreleased)"), (true, "125074cf", "0.1.0 (commit 125074cf)"),
        (false, "125074cf", "0.1.0 (unreleased, commit 125074cf)"),
    ])
    func `A version says whether it is released, and of which commit it is`(
        isRelease: Bool, commit: String, description: String
    ) {
        expectEqual(BuildVersion(isRelease: isRelease, commit: commit).description, description)
    }

    @Test func `The newest version of the changelog is that of the build`() throws {
        let heading = try String(contentsOf: Repository.url("CHANGELOG.md"), encoding: .utf8).split(separator: "\n")
            .first {
                $0.hasPrefix("## ")
            }
        expectEqual(heading?.hasPrefix("## \(BuildVersion.number)"), true)
        try expectEqual(HearthBinary.run(["--version"]).output, "hearth \(BuildVersion.current)\n")
    }
}
