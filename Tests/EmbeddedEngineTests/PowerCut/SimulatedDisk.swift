// A model of a disk: what is durable of files and directories, and what has changed since.
//
// - A sync of a file makes its bytes and its size durable, but not its name.
// - A sync of a directory makes its names durable: what was created, renamed and removed in it.
// - Of everything else a power cut leaves any part: of each unit of a file (a page; in the log also a sector) the bytes
//   before or after any of its changes, of the sizes of a file any, of the changes of names any subset. A renaming is
//   one change. Half of the cuts keep changes of names in their order, as a file system with a journal does.

import EngineTestSupport
import Glibc
import TestSupport

/// How a directory is copied.
enum CopyForm: CaseIterable { case backup, fork }

/// What a test has seen of a directory, in order.
enum DiskEvent {
    case open(descriptor: Int32, path: String, creates: Bool, truncates: Bool)
    case write(descriptor: Int32, bytes: Bytes, offset: Int)
    case resize(descriptor: Int32, byteCount: Int)
    case sync(descriptor: Int32)
    case close(descriptor: Int32)
    case makeDirectory(path: String)
    case rename(path: String, newPath: String)
    case link(path: String, newPath: String)
    case removeFile(path: String)
    case removeDirectory(path: String)
    /// A commit is begun: from now on it may be found.
    case begin(version: UInt64)
    /// A commit is acknowledged: from now on it must be found.
    case acknowledge(version: UInt64)
    /// A backup or a fork is complete.
    case endCopy
    /// The archive has all commits up to a version.
    case archive(version: UInt64)
}

/// Paths are relative to the directory of the simulation, whose name is durable.
struct SimulatedDisk {
    private struct File {
        var durable = FileContents()
        var newest = FileContents()
        var changes: [FileChange] = []
    }

    private struct Directory {
        var durable: [String: Int] = [:]
        var newest: [String: Int] = [:]
        var changes: [(order: Int, change: NameChange)] = []
    }

    private enum NameChange {
        case add(String, Int)
        case remove(String)
        case move(String, to: String, Int)

        func apply(to names: inout [String: Int]) {
            switch self {
            case .add(let name, let node): names[name] = node
            case .remove(let name): names[name] = nil
            case .move(let name, let newName, let node):
                if names[name] == node { names[name] = nil }
                names[newName] = node
            }
        }
    }

    private var files: [Int: File] = [:]
    private var directories: [Int: Directory] = [0: Directory()]
    private var descriptors: [Int32: Int] = [:]
    private var nextNode = 1
    private var changeCount = 0
    /// The last commits that were begun and acknowledged.
    private(set) var begun: UInt64 = 0
    private(set) var acknowledged: UInt64 = 0
    private(set) var hasCopy = false
    /// What the archive has said to have.
    private(set) var archived: UInt64 = 0

    init() {}

    /// The contents of a directory, all durable.
    init(loading path: String, begun: UInt64 = 0, acknowledged: UInt64 = 0) {
        self.begun = begun
        self.acknowledged = acknowledged
        load(path, into: 0)
    }

    private mutating func load(_ path: String, into directory: Int) {
        for name in Files.names(in: path) {
            let node = nextNode
            nextNode += 1
            if Files.isDirectory(path + "/" + name) {
                directories[node] = Directory()
                load(path + "/" + name, into: node)
            } else {
                let contents = FileContents(Files.read(path + "/" + name))
                files[node] = File(durable: contents, newest: contents)
            }
            directories[directory]!.durable[name] = node
            directories[directory]!.newest[name] = node
        }
    }

    /// The process ends: its descriptors are closed, and what it wrote is as durable as before.
    mutating func kill() { descriptors = [:] }

    private func node(_ path: String) -> Int? {
        var node = 0
        for name in path.split(separator: "/") {
            guard let next = directories[node]?.newest[String(name)] else { return nil }
            node = next
        }
        return node
    }

    private func place(_ path: String) -> (directory: Int, name: String) {
        var names = path.split(separator: "/")
        let name = String(names.removeLast())
        return (node(names.joined(separator: "/"))!, name)
    }

    private mutating func change(_ path: String, _ change: (String) -> NameChange) {
        let (directory, name) = place(path)
        changeCount += 1
        let made = change(name)
        made.apply(to: &directories[directory]!.newest)
        directories[directory]!.changes.append((changeCount, made))
    }

    private mutating func change(_ node: Int, _ change: FileChange) {
        files[node]!.newest.apply(change)
        files[node]!.changes.append(change)
    }

    mutating func apply(_ event: DiskEvent) {
        switch event {
        case .open(let descriptor, let path, let creates, let truncates):
            if node(path) == nil, creates {
                let created = nextNode
                nextNode += 1
                files[created] = File()
                change(path) { .add($0, created) }
            }
            let node = node(path)!
            descriptors[descriptor] = node
            if truncates, files[node]!.newest.byteCount > 0 { change(node, .resize(byteCount: 0)) }
        case .write(let descriptor, let bytes, let offset):
            change(descriptors[descriptor]!, .write(bytes, offset: offset))
        case .resize(let descriptor, let byteCount):
            change(descriptors[descriptor]!, .resize(byteCount: byteCount))
        case .sync(let descriptor): sync(descriptors[descriptor]!)
        case .close(let descriptor): descriptors[descriptor] = nil
        case .makeDirectory(let path):
            let created = nextNode
            nextNode += 1
            directories[created] = Directory()
            change(path) { .add($0, created) }
        case .rename(let path, let newPath):
            let moved = node(path)!
            let newName = place(newPath).name
            precondition(place(newPath).directory == place(path).directory, "a file is moved to another directory")
            change(path) { .move($0, to: newName, moved) }
        case .link(let path, let newPath):
            let linked = node(path)!
            change(newPath) { .add($0, linked) }
        case .removeFile(let path), .removeDirectory(let path):
            change(path) { .remove($0) }
        case .begin(let version): begun = version
        case .acknowledge(let version): acknowledged = version
        case .endCopy: hasCopy = true
        case .archive(let version): archived = version
        }
    }

    private mutating func sync(_ node: Int) {
        if let file = files[node] {
            files[node] = File(durable: file.newest, newest: file.newest)
        } else {
            directories[node]!.durable = directories[node]!.newest
            directories[node]!.changes = []
        }
    }
}

// MARK: - Cuts

extension SimulatedDisk {
    /// What a cut keeps of changes that were not synced.
    enum Kept: CaseIterable {
        /// Everything: a kill of the process.
        case all
        case nothing
        /// Of names a part in order, of files anything.
        case namesInOrder
        case any
    }

    /// Writes what a power cut leaves into a directory that does not exist.
    func write(_ kept: Kept, to path: String, _ random: inout SeededGenerator) {
        let orders = directories.values.flatMap { $0.changes.map(\.order) }.sorted()
        let last = random.below(orders.count + 1)
        write(directory: 0, kept, orderMax: last == 0 ? 0 : orders[last - 1], to: path, &random)
    }

    private func write(
        directory: Int, _ kept: Kept, orderMax: Int, to path: String, _ random: inout SeededGenerator
    ) {
        mkdir(path, 0o700)
        let directory = directories[directory]!
        var names = directory.durable
        for (order, change) in directory.changes {
            let isKept =
                switch kept {
                case .all: true
                case .nothing: false
                case .namesInOrder: order <= orderMax
                case .any: random.oneIn(2)
                }
            if isKept { change.apply(to: &names) }
        }
        for (name, node) in names.sorted(by: { $0.key < $1.key }) {
            if let file = files[node] {
                Files.write(contents(file, kept, isLog: name.hasSuffix(".log"), &random), to: path + "/" + name)
            } else {
                write(directory: node, kept, orderMax: orderMax, to: path + "/" + name, &random)
            }
        }
    }

    private func contents(
        _ file: File, _ kept: Kept, isLog: Bool, _ random: inout SeededGenerator
    ) -> FileContents {
        if kept == .all || file.changes.isEmpty { return file.newest }
        if kept == .nothing { return file.durable }
        switch random.below(4) {
        case 0: return file.newest
        case 1: return file.durable
        default:
            let unitBytes = isLog && random.oneIn(2) ? 512 : FileContents.pageBytes
            return file.durable.cut(file.changes, unitBytes: unitBytes, &random)
        }
    }

    /// Whether a directory is, byte by byte, what the events have made: then no change was missed.
    func isSame(as path: String) -> Bool { isSame(0, path) }

    private func isSame(_ node: Int, _ path: String) -> Bool {
        if let file = files[node] { return FileContents(Files.read(path)).isSame(as: file.newest) }
        let names = directories[node]!.newest
        return Files.names(in: path) == names.keys.sorted() && names.allSatisfy { isSame($1, path + "/" + $0) }
    }
}

extension FileContents {
    /// Whether the bytes are the same; a page of zeros may be there or missing.
    func isSame(as other: FileContents) -> Bool {
        guard byteCount == other.byteCount else { return false }
        return Set(pages.keys).union(other.pages.keys).allSatisfy { page in
            let (left, right) = (bytes(ofPage: page), other.bytes(ofPage: page))
            if left.isEmpty { return right.allSatisfy { $0 == 0 } }
            return right.isEmpty ? left.allSatisfy { $0 == 0 } : left == right
        }
    }
}

extension Files {
    static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Writes a file; pages of zeros become holes.
    static func write(_ contents: FileContents, to path: String) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        precondition(descriptor >= 0, "cannot open \(path)")
        defer { close(descriptor) }
        for page in contents.pages.keys {
            let bytes = contents.bytes(ofPage: page)
            let count = bytes.withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress, $0.count, page * FileContents.pageBytes)
            }
            precondition(count == bytes.count)
        }
        precondition(ftruncate(descriptor, contents.byteCount) == 0)
    }
}
