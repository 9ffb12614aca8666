// Who gets the blocks of `runs/space` on a full disk: checkpoints, merges, and commits that only delete.

import FileSystem
import Glibc
import Storage
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20)))
struct RunSpaceTests {
    private static let reserve = 2 << 20
    private static let slack = 1 << 20
    private static let forMerges = 8 << 20
    private static let held = 1 << 20

    private let disk: TemporaryDisk

    init() throws { disk = try TemporaryDisk(megabytes: 30) }

    /// The space as it is when a directory is opened whose memtables have so many bytes.
    private func open(heldBytes: Int) throws -> RunSpace {
        let space = try RunSpace(
            disk.path(of: "space"), memtableBytesMax: 1 << 20, reserveBytes: Self.reserve,
            fault: FaultInjection(fault: nil))
        space.setMergeBytes(Self.forMerges)
        space.recheck(heldBytes: heldBytes)
        return space
    }

    /// The space on a disk that has become full after everything was allocated.
    private func openAndFill() throws -> RunSpace {
        let space = try open(heldBytes: Self.held)
        try space.admit(heldBytes: Self.held, mayUseReserve: false, isFinal: true)
        try disk.fill()
        return space
    }

    @Test
    func `Without an engine a part of the slack is given back, and half of it stays`() throws {
        _ = try openAndFill()
        let piece = 64 << 10
        let before = try File(disk.path(of: "space"), flags: O_RDONLY).byteCount()
        expect(RunSpace.release(piece, of: disk.path))
        let file = try File(disk.path(of: "small"), flags: O_RDWR | O_CREAT)
        try file.write(string: String(repeating: "x", count: piece / 2))
        try expectEqual(File(disk.path(of: "space"), flags: O_RDONLY).byteCount(), before - piece)
        while RunSpace.release(piece, of: disk.path) {}
        let left = try File(disk.path(of: "space"), flags: O_RDONLY).byteCount()
        expect((Self.slack / 2..<Self.slack / 2 + piece).contains(left))
        expect(!RunSpace.release(piece, of: disk.path(of: "none")))
    }

    private func isAdmitted(_ heldBytes: Int, _ space: RunSpace, deletes: Bool = true) throws -> Bool {
        do throws(StorageError) {
            try space.admit(heldBytes: heldBytes, mayUseReserve: deletes, isFinal: true)
            return true
        } catch {
            if error.code != .full { throw error }
            return false
        }
    }

    /// Writes a file until it gets no more blocks.
    /// - Returns: its bytes.
    private func take(_ name: String, _ space: RunSpace, _ purpose: RunSpace.Purpose) throws -> Int {
        let file = try File(disk.path(of: name), flags: O_RDWR | O_CREAT)
        var end = 0
        while true {
            do throws(StorageError) {
                try space.provide(file, from: &end, to: end + (128 << 10), for: purpose)
            } catch {
                if error.code != .full { throw error }
                return end
            }
        }
    }

    @Test
    func `Deletes are accepted while merges have what was allocated for them, and half of the reserve`() throws {
        let space = try openAndFill()
        try expect(take("merge", space, .merge) > Self.forMerges - (512 << 10))
        try expect(!isAdmitted(Self.held + (256 << 10), space, deletes: false))
        try expect(isAdmitted(Self.held + (256 << 10), space))
        try expect(take("mergeForSpace", space, .mergeForSpace) > (Self.slack + Self.reserve) / 2 - (512 << 10))
        // Also what was deleted meanwhile has its place.
        let half = Self.held + (256 << 10) + (Self.slack + Self.reserve) / 2
        try expect(isAdmitted(half - (64 << 10), space))
        try expect(!isAdmitted(half + (512 << 10), space))
    }

    @Test
    func `Small files of others get a part of the reserve, and half of it is left to deletes`() throws {
        let space = try openAndFill()
        let piece = 64 << 10
        var released = 0
        while space.release(piece) { released += piece }
        expect(released > 0)
        let file = try File(disk.path(of: "small"), flags: O_RDWR | O_CREAT)
        try file.write(string: String(repeating: "x", count: 3 * piece))
        let half = Self.held + (Self.slack + Self.reserve) / 2
        try expect(isAdmitted(half - piece, space))
    }

    @Test(arguments: [true, false])
    func `Deletes are accepted after a kill during a merge, also if others take the blocks of its file`(isTaken: Bool)
        throws
    {
        let killed = try openAndFill()
        try expect(take("merge", killed, .mergeForSpace) > Self.forMerges)
        try disk.remove("merge")
        if isTaken { try disk.fill() }

        let space = try open(heldBytes: Self.held)
        try expect(isAdmitted(Self.held + (1 << 20), space))
        try expect(isAdmitted(Self.held, space, deletes: false) != isTaken)
    }

    @Test
    func `After a kill during a checkpoint deletes get the blocks of its file, if there are not enough for others`()
        throws
    {
        let killed = try openAndFill()
        try expect(take("merge", killed, .merge) > 0)
        try expect(take("run", killed, .checkpoint) > Self.held)
        try disk.remove("run")

        let space = try open(heldBytes: Self.held)
        try expect(!isAdmitted(Self.held, space, deletes: false))
        try expect(isAdmitted(Self.held + (1 << 20), space))
        // Merges leave them to deletes.
        _ = try take("other", space, .mergeForSpace)
        try expect(isAdmitted(Self.held + (1 << 20), space))
    }
}
