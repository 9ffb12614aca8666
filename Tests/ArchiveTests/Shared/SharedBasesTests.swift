// Bases in a directory that servers share: what damage, missing mounts, full disks and other makers come to.

import Foundation
import Glibc
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Archive
@testable import FileSystem

@Suite(.timeLimit(.minutes(20))) struct SharedBasesTests {
    private let directory = TemporaryDirectory("shared-bases")
    private let store = StoreIdentity(high: 1, low: 2)
    /// Larger than a piece, empty, small.
    private let files: [String: [UInt8]] = [
        "runs/1.run": (0..<2_500_001).map { UInt8(truncatingIfNeeded: $0 &* 31) }, "runs/2.run": [],
        "runs/MANIFEST": [1, 2, 3], "rules/000001.rules": Array("rules".utf8), "FORMAT": [4], "TIMELINE": [5],
    ]
    private var root: String { directory.path(of: "shared") }
    private var bases: SharedBases { SharedBases("\(root)/main", of: store) }
    private var target: String { directory.path(of: "target") }

    init() throws {
        try Directory.create(directory.path(of: "shared"))
        for (path, bytes) in files {
            let place = directory.path(of: "source/\(path)")
            try Directory.create(Directory.parent(of: place))
            try Data(bytes).write(to: URL(fileURLWithPath: place))
        }
    }

    private func write(
        to folder: String = SharedBases.folder(epoch: 3), isCancelled: () -> Bool = { false }
    ) throws -> String {
        try bases.claim()
        let sources = files.map { path, bytes in
            SharedBases.Source(path: path, place: directory.path(of: "source/\(path)"), byteCount: bytes.count)
        }
        let description = SharedBases.Description(
            number: 1, timeline: CommitVersion(microseconds: 5), version: CommitVersion(microseconds: 70),
            horizon: CommitVersion(microseconds: 60))
        _ = try bases.write(sources, description, to: folder, isCancelled: isCancelled)
        return folder
    }

    private func copy(_ folder: String, version: UInt64 = 70) throws -> Int {
        if Directory.exists(target) { try Directory.removeAll(target) }
        var byteCount = 0
        try bases.copy(folder, version: CommitVersion(microseconds: version), to: target) { byteCount += $0 }
        return byteCount
    }

    private func error(_ body: () throws -> Void) -> StorageError? {
        do {
            try body()
            return nil
        } catch {
            return error as? StorageError
        }
    }

    private var folders: [String] {
        get throws { try Directory.names(in: bases.directory).filter { $0 != "BASES" } }
    }

    private func expectCopied(_ folder: String) throws {
        let wanted = files.filter { $0.key.contains("/") }
        try expectEqual(copy(folder), wanted.values.reduce(0) { $0 + $1.count })
        for (path, bytes) in wanted {
            try expectEqual([UInt8](Data(contentsOf: URL(fileURLWithPath: "\(target)/\(path)"))), bytes, "\(path)")
        }
        try expectEqual(Directory.names(in: target), ["rules", "runs"])
    }

    @Test
    func `A base that was written is copied to a directory, byte for byte`() throws {
        let folder = try write()
        try bases.check(folder)
        try expectCopied(folder)
        // The group with which a base ends may be later than its last version, and never earlier.
        try expect(copy(folder, version: 71) > 0)
        expectEqual(error { _ = try copy(folder, version: 69) }?.code, .corrupt)
    }

    @Test(arguments: ["runs/1.run", "runs/2.run", "runs/MANIFEST", "rules/000001.rules", "BASE"])
    func `Damage is found and named wherever it is`(path: String) throws {
        let folder = try write()
        let place = "\(bases.directory)/\(folder)/\(path)"
        let whole = try [UInt8](Data(contentsOf: URL(fileURLWithPath: place)))
        var damaged: [[UInt8]?] = [nil, whole + [0]]
        if let last = whole.last {
            damaged += [whole.dropLast() + [last ^ 1], Array(whole.dropLast())]
        }
        for bytes in damaged {
            if let bytes {
                try Data(bytes).write(to: URL(fileURLWithPath: place))
            } else {
                try Directory.removeFile(place)
            }
            let found = error { _ = try copy(folder) }
            expect(found?.code == .corrupt && found?.file == place, "\(String(describing: found))")
            if bytes?.count != whole.count { expectEqual(error { try bases.check(folder) }?.file, place) }
        }
        try Data(whole).write(to: URL(fileURLWithPath: place))
        try expectCopied(folder)
    }

    @Test
    func `An empty mount point, and the directory of another store, are not taken for the shared one`() throws {
        expectEqual(error { try bases.checkMark() }?.code, .refused)
        let folder = try write()
        try bases.claim()
        try bases.checkMark()
        let other = SharedBases(bases.directory, of: StoreIdentity(high: 1, low: 3))
        expectEqual(error { try other.claim() }?.message.contains("another store"), true)
        expectEqual(error { try other.check(folder) }?.code, .refused)
        // The mount is gone.
        try FileManager.default.moveItem(atPath: root, toPath: directory.path(of: "away"))
        expectEqual(error { try bases.claim() }?.message.contains("does not exist"), true)
        try Directory.create(root)
        for attempt in [
            { try bases.checkMark() }, { try bases.check(folder) },
            { _ = try bases.remove(except: [], throughEpoch: 9) },
        ] {
            expectEqual(error(attempt)?.code, .refused)
        }
        expectEqual(error { _ = try copy(folder) }?.code, .refused)
        try expectEqual(Directory.names(in: root), [])
    }

    @Test
    func `A leader removes what its own epoch and earlier ones have left, and nothing of later ones`() throws {
        let kept = try write(to: SharedBases.folder(epoch: 2))
        let old = try write(to: SharedBases.folder(epoch: 3))
        let later = try write(to: SharedBases.folder(epoch: 4))
        // An interrupted maker has left some files, and no description.
        let unfinished = SharedBases.folder(epoch: 1)
        try Directory.create("\(bases.directory)/\(unfinished)/runs")
        try Data([1]).write(to: URL(fileURLWithPath: "\(bases.directory)/\(unfinished)/runs/1.run"))
        try Directory.create("\(bases.directory)/lost+found")
        expectEqual(error { _ = try bases.remove(except: [kept], throughEpoch: 3) { true } }?.code, .closed)
        try expectEqual(folders.count, 5)
        let removed = try bases.remove(except: [kept], throughEpoch: 3)
        expectEqual(Set(removed), [old, unfinished])
        try expectEqual(Set(folders), [kept, later, "lost+found"])
        try expectCopied(kept)
        try expectCopied(later)
    }

    @Test(arguments: [ENOSPC, EIO])
    func `A base that cannot be written leaves nothing, and the next one is complete`(status: Int32) throws {
        try bases.claim()
        for name in ["runs/1.run", "BASE", "rules"] {
            let failing = FailingDirectory(root, failure: status) { change in
                switch change {
                case .open(let path, true, _, _): path.contains(name)
                case .makeDirectory(let path): path.hasSuffix(name)
                default: false
                }
            }
            let found = error { _ = try write() }
            expectEqual(found?.code, status == ENOSPC ? .full : .inputOutput, "\(name)")
            failing.end()
            try expectEqual(folders, [])
        }
        try expectCopied(try write())
    }

    @Test(arguments: [EPERM, EXDEV, ENOSYS, EOPNOTSUPP])
    func `A mount without rename and links has bases too`(status: Int32) throws {
        let mount = FailingDirectory(root, failure: status) { change in
            switch change {
            case .rename, .link: true
            default: false
            }
        }
        defer { mount.end() }
        try expectCopied(try write())
    }

    @Test
    func `A disk that loses what it has acknowledged is found out before the base counts`() throws {
        try bases.claim()
        let place = bases.directory
        // The bytes of a file do not arrive.
        let descriptors = Mutex<Set<Int32>>([])
        let watch = DiskWatch.begin(place) { change, call in
            switch change {
            case .open(let path, true, _, _) where path.hasSuffix("runs/1.run"):
                let descriptor = call()
                descriptors.withLock { _ = $0.insert(Int32(descriptor)) }
                return descriptor
            case .write(let descriptor, let bytes, _) where descriptors.withLock({ $0.contains(descriptor) }):
                return bytes.count
            case .close(let descriptor):
                descriptors.withLock { _ = $0.remove(descriptor) }
                return call()
            default: return call()
            }
        }
        let found = error { _ = try write() }
        watch.end()
        expect(found?.code == .corrupt && found?.file?.hasSuffix("runs/1.run") == true, "\(String(describing: found))")
        try expectEqual(folders, [])
    }

    @Test
    func `A maker that gives up leaves nothing, wherever it stops`() throws {
        try bases.claim()
        // Seven pieces are written, one description, and as many pieces are read back.
        for stop in 0..<10 {
            var asked = 0
            let found = error {
                _ = try write {
                    asked += 1
                    return asked > stop
                }
            }
            expectEqual(found?.code, .closed, "\(stop)")
            try expectEqual(folders, [])
        }
        try expectCopied(try write())
    }

    @Test
    func `A directory that is too small is not filled`() throws {
        let disk = try TemporaryDisk(megabytes: 2)
        let small = SharedBases(disk.path(of: "main"), of: store)
        try small.claim()
        let source = directory.path(of: "source/runs/1.run")
        let description = SharedBases.Description(number: 1, timeline: .zero, version: .zero, horizon: .zero)
        let found = error {
            _ = try small.write(
                [.init(path: "runs/1.run", place: source, byteCount: 2_500_001)], description,
                to: SharedBases.folder(epoch: 1), isCancelled: { false })
        }
        expect(found?.code == .full && found?.message.contains("the file system has") == true)
        try expectEqual(Directory.names(in: small.directory), ["BASES"])
    }
}
