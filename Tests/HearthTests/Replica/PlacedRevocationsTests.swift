// Revocations of a directory in which a state takes its place, which has some too.

import Foundation
import Identity
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(5)))
struct PlacedRevocationsTests {
    private let directory = TemporaryDirectory("placed-revocations")
    private var data: String { directory.path(of: "data") }

    private func revoke(_ uid: String, before moment: Int64, in directory: String) throws {
        try IdentityDirectory(dataDirectory: directory).revocations().revoke(uid: uid, before: moment)
    }

    private func moments() throws -> [String: Int64] {
        let moments = try IdentityDirectory(dataDirectory: data).revocations().moments
        return Dictionary(uniqueKeysWithValues: moments.map { (String(decoding: $0.key, as: UTF8.self), $0.value) })
    }

    /// A state with revocations, as that of a cluster.
    private func makeState(_ place: String) throws {
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        try revoke("ada", before: 5, in: place)
        try revoke("bob", before: 5, in: place)
        try Data().write(to: URL(fileURLWithPath: "\(place)/FORMAT"))
    }

    @Test
    func `A command revokes a user while a state is made for the directory`() throws {
        try RestorePlacing.run(data) { place in
            try makeState(place)
            try revoke("ada", before: 9, in: data)
            try revoke("eve", before: 1, in: data)
        }
        for _ in 0..<2 { try expectEqual(moments(), ["ada": 9, "bob": 5, "eve": 1]) }
        let names = try FileManager.default.contentsOfDirectory(atPath: "\(data)/identity")
        expectEqual(names, ["revocations.json"])
    }

    @Test
    func `A command revokes a user when a base waits to take its place`() throws {
        try makeState("\(data)/BASE")
        try revoke("eve", before: 1, in: data)
        try BasePlacing.settle(data)
        try expectEqual(moments(), ["ada": 5, "bob": 5, "eve": 1])
    }

    @Test
    func `Those of a state alone are in the directory`() throws {
        try RestorePlacing.run(data) { try makeState($0) }
        try expectEqual(moments(), ["ada": 5, "bob": 5])
    }
}
