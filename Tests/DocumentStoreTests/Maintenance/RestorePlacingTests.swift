// How a state from elsewhere gets into a data directory.

import Foundation
import Storage
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)), .needsFiles)
struct RestorePlacingTests {
    private struct Failure: Error {}

    @Test(arguments: [[], ["lost+found"], ["LOCK"]])
    func `A restore that fails leaves a directory as it was`(names: [String]) throws {
        let directory = TemporaryDirectory("restore-failed")
        let data = directory.path(of: "data")
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        for name in names { try Data().write(to: URL(fileURLWithPath: "\(data)/\(name)")) }
        #expect(throws: Failure.self) {
            try RestorePlacing.run(data) { place in
                try FileManager.default.createDirectory(atPath: "\(place)/runs", withIntermediateDirectories: true)
                throw Failure()
            }
        }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: data), names)
    }

    @Test
    func `A restore that fails leaves no directory that it has made`() throws {
        let directory = TemporaryDirectory("restore-failed-new")
        #expect(throws: Failure.self) { try RestorePlacing.run(directory.path(of: "data")) { _ in throw Failure() } }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), [])
    }
}
