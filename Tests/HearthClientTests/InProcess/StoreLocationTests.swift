import Basics
import Foundation
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct StoreLocationTests {
    @Test
    func `Locations are read, percent-encoding included`() throws {
        let cases: [(String, StoreLocation?)] = [
            ("127.0.0.1:8080", nil), ("localhost", nil), ("FILE:/a", nil),
            ("file:///a/b", .directory("/a/b")), ("file:/a/b/", .directory("/a/b")),
            ("file://localhost/a", .directory("/a")), ("file:///a/./b/../c", .directory("/a/c")),
            ("file:///a%20b/%C3%A9", .directory("/a b/é")),
            ("file:data", .directory("\(FileManager.default.currentDirectoryPath)/data")),
            ("file::memory:", .memory("")), ("file::memory:one", .memory("one")),
        ]
        for (text, location) in cases { try expectEqual(StoreLocation(text), location, "\(text)") }
    }

    @Test
    func `Each fork is another location`() throws {
        let forks = try (0..<2).map { _ in try StoreLocation("fork:file:///a/b") }
        expect(forks[0] != forks[1])
        let sources = forks.map { fork in if case .fork(let source, _)? = fork { source } else { "" } }
        expectEqual(sources, ["/a/b", "/a/b"])
    }

    @Test(arguments: [
        "fork:", "fork:/a", "fork:file::memory:", "fork:fork:file:///a", "file:", "file://", "file://host/a",
        "file:///%", "file:///%zz", "file:///%FF", "file:///a%00b",
    ])
    func `Another computer, no path, and what is not text are refused`(text: String) {
        #expect(throws: RequestError.self) { try StoreLocation(text) }
    }

    @Test(arguments: ["/a/b", "/a b/é?#%", "/"])
    func `A path becomes a location and the same path again`(path: String) throws {
        try expectEqual(StoreLocation(StoreLocation.host(ofDirectory: path)), .directory(path))
    }

    @Test
    func `A symbolic link names the same store as its target`() throws {
        let directory = TemporaryDirectory("location")
        try FileManager.default.createSymbolicLink(
            atPath: directory.path(of: "link"), withDestinationPath: directory.path)
        let target = try StoreLocation("file://\(directory.path)/data")
        try expectEqual(StoreLocation("file://\(directory.path)/link/data"), target)
    }
}
