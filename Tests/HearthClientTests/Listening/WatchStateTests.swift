// What a client makes of the messages of a Listen stream. The first group follows the public conformance vectors.

import Basics
import DocumentModel
import FirestoreMessages
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20)))
struct WatchStateTests {
    private static let root = "projects/p/databases/d/documents"

    /// A state with target 1, and what it reports.
    private struct Stream {
        var state = WatchState(database: "projects/p/databases/d")
        /// For each event: ids of documents with their update times in seconds; nil for a removed one.
        var snapshots: [[String: Int64?]] = []
        /// For each event: ids of documents that are listed again without a change.
        var confirmed: [[String]] = []
        var failures: [StatusCode] = []
        var mismatchCount = 0
        var requests: [ListenRequest] = []

        init() { _ = state.add(1, .documents([])) }

        private static func id(_ name: String) -> String { String(name.split(separator: "/").last ?? "") }

        mutating func receive(_ responses: ListenResponse...) throws {
            for response in responses {
                let step = try state.receive(response)
                requests += step.requests
                for (_, event) in step.events {
                    switch event {
                    case .snapshot(let snapshot):
                        snapshots.append(
                            Dictionary(
                                uniqueKeysWithValues: snapshot.changes.map { name, change in
                                    var seconds: Int64?
                                    if case .found(let document) = change { seconds = document.updateTime.seconds }
                                    return (Self.id(name.string), seconds)
                                }))
                        confirmed.append(snapshot.confirmed.map { Self.id($0.name) })
                    case .mismatch: mismatchCount += 1
                    case .failure(let error): failures.append(error.code)
                    }
                }
            }
        }
    }

    private static func name(_ id: String) -> String { "\(root)/C/\(id)" }

    private static func changed(_ id: String, _ seconds: Int64, removed: Bool = false) -> ListenResponse {
        let time = TimestampValue(seconds: seconds, nanoseconds: 0)
        let document = DocumentMessage(name: name(id), fields: [], createTime: time, updateTime: time)
        return .documentChange(
            ListenResponse.DocumentChange(
                document: document.encodedBytes(), targets: removed ? [] : [1], removedTargets: removed ? [1] : []))
    }

    private static func target(_ kind: ListenResponse.TargetChange.Kind, _ ids: [Int32] = []) -> ListenResponse {
        .targetChange(ListenResponse.TargetChange(kind, targets: ids))
    }

    private static func consistent(_ seconds: Int64) -> ListenResponse {
        var change = ListenResponse.TargetChange(.noChange)
        change.readTime = TimestampValue(seconds: seconds, nanoseconds: 0)
        change.resumeToken = [UInt8(seconds)]
        return .targetChange(change)
    }

    private static func deleted(_ id: String, _ targets: [Int32] = [1]) -> ListenResponse.DocumentRemoval {
        ListenResponse.DocumentRemoval(name: name(id), removedTargets: targets)
    }

    // MARK: The conformance vectors

    @Test
    func `listen: add a doc`() throws {
        var stream = Stream()
        try stream.receive(Self.changed("d1", 1), Self.target(.current), Self.consistent(2))
        expectEqual(stream.snapshots, [["d1": 1]])
    }

    @Test(arguments: [0, 1, 2, 3])
    func `listen: a document that is removed, deleted, or in removed_target_ids`(form: Int) throws {
        var stream = Stream()
        try stream.receive(Self.changed("d1", 1), Self.target(.current), Self.consistent(1))
        switch form {
        case 0: try stream.receive(.documentRemove(Self.deleted("d1")))
        case 1: try stream.receive(.documentDelete(Self.deleted("d1")))
        case 2: try stream.receive(.documentRemove(Self.deleted("d1", [])))
        default: try stream.receive(Self.changed("d1", 1, removed: true))
        }
        try stream.receive(Self.consistent(2))
        expectEqual(stream.snapshots, [["d1": 1], ["d1": nil]])
    }

    @Test
    func `listen: a filter with the same size is a no-op`() throws {
        var stream = Stream()
        try stream.receive(
            Self.changed("d1", 1), Self.changed("d2", 1), Self.target(.current), Self.consistent(1),
            Self.changed("d3", 1), .documentDelete(Self.deleted("d1")),
            .filter(ListenResponse.ExistenceFilter(target: 1, count: 2)), Self.consistent(2))
        expectEqual(stream.snapshots, [["d1": 1, "d2": 1], ["d1": nil, "d3": 1]])
        expect(stream.requests.isEmpty)
    }

    @Test
    func `listen: no snapshot before CURRENT`() throws {
        var stream = Stream()
        try stream.receive(Self.changed("d1", 1), Self.consistent(1))
        expect(stream.snapshots.isEmpty)
        try stream.receive(Self.changed("d2", 1), Self.target(.current), Self.consistent(2))
        expectEqual(stream.snapshots, [["d1": 1, "d2": 1]])
    }

    @Test
    func `listen: ADD of the same target changes nothing`() throws {
        var stream = Stream()
        try stream.receive(
            Self.changed("d1", 1), Self.target(.current), Self.target(.add, [1]), Self.consistent(1))
        expectEqual(stream.snapshots, [["d1": 1]])
    }

    @Test
    func `listen: REMOVE without a cause is an error`() throws {
        var stream = Stream()
        try stream.receive(Self.changed("d1", 1), Self.target(.current), Self.target(.remove), Self.consistent(1))
        expect(stream.snapshots.isEmpty)
        expectEqual(stream.failures, [.internal])
    }

    // MARK: Further rules

    @Test
    func `An empty result is one empty snapshot; later ones need a change`() throws {
        var stream = Stream()
        try stream.receive(Self.target(.add, [1]), Self.target(.current, [1]), Self.consistent(1), Self.consistent(2))
        expectEqual(stream.snapshots, [[:]])
    }

    @Test
    func `An equal document is not a change; a deletion is reported also if the document was not there`() throws {
        var stream = Stream()
        try stream.receive(Self.changed("d1", 1), Self.target(.current), Self.consistent(1))
        try stream.receive(
            Self.changed("d1", 1), Self.changed("d2", 2), .documentDelete(Self.deleted("d2")), Self.consistent(2))
        expectEqual(stream.snapshots, [["d1": 1], ["d2": nil]])
    }

    @Test
    func `After RESET, documents that do not come again are removed`() throws {
        var stream = Stream()
        try stream.receive(
            Self.changed("d1", 1), Self.changed("d2", 1), Self.target(.current), Self.consistent(1),
            Self.target(.reset, [1]), Self.changed("d2", 1), Self.consistent(2))
        expectEqual(stream.snapshots.count, 1, "not consistent before CURRENT")
        try stream.receive(Self.target(.current, [1]), Self.consistent(3))
        expectEqual(stream.snapshots, [["d1": 1, "d2": 1], ["d1": nil]])
    }

    @Test
    func `A filter with another size lists the target again without a token`() throws {
        var stream = Stream()
        try stream.receive(
            Self.changed("d1", 1), Self.changed("d2", 1), Self.target(.current), Self.consistent(1),
            .filter(ListenResponse.ExistenceFilter(target: 1, count: 1)))
        expectEqual(stream.mismatchCount, 1)
        expectEqual(stream.requests.map(\.change), [.remove(1), .add(ListenTarget(.documents([]), id: 1))])
        // The rest of the target that is removed, and the answers to both requests.
        try stream.receive(Self.target(.current, [1]), Self.consistent(2), Self.changed("d9", 2), Self.consistent(3))
        expectEqual(stream.snapshots.count, 1)
        try stream.receive(Self.target(.remove, [1]), Self.target(.add, [1]))
        try stream.receive(Self.changed("d2", 1), Self.target(.current, [1]), Self.consistent(4))
        expectEqual(stream.snapshots, [["d1": 1, "d2": 1], ["d1": nil]])
        expect(stream.failures.isEmpty && stream.requests.count == 2)
        // Once it is listed again, REMOVE is an error as before.
        try stream.receive(Self.target(.remove, [1]))
        expectEqual(stream.failures, [.internal])
    }

    @Test
    func `A target that is refused while it is to be listed again is not listed`() throws {
        var stream = Stream()
        try stream.receive(
            Self.changed("d1", 1), Self.target(.current), Self.consistent(1),
            .filter(ListenResponse.ExistenceFilter(target: 1, count: 0)))
        var refusal = ListenResponse.TargetChange(.remove, targets: [1])
        refusal.cause = StatusMessage(code: .permissionDenied, message: "")
        try stream.receive(.targetChange(refusal))
        expectEqual(stream.failures, [.permissionDenied])
        expectEqual(stream.requests.map(\.change), [.remove(1), .add(ListenTarget(.documents([]), id: 1)), .remove(1)])
    }

    @Test
    func `A filter that comes before a connection is lost does not outlast it`() throws {
        var stream = Stream()
        try stream.receive(
            Self.changed("d1", 1), Self.target(.current), Self.consistent(1),
            .filter(ListenResponse.ExistenceFilter(target: 1, count: 0)))
        expectEqual(stream.state.reconnect().map(\.change), [.add(ListenTarget(.documents([]), id: 1))])
        try stream.receive(Self.target(.add, [1]), Self.target(.current, [1]), Self.consistent(2))
        expectEqual(stream.snapshots, [["d1": 1], ["d1": nil]])
    }

    @Test
    func `A new stream continues from the last snapshot; what came after it is forgotten`() throws {
        var stream = Stream()
        try stream.receive(
            Self.changed("d1", 1), Self.target(.current), Self.consistent(1), Self.changed("d9", 2))
        let requests = stream.state.reconnect()
        expectEqual(
            requests.map(\.change), [.add(ListenTarget(.documents([]), id: 1, resume: .token([1]), expectedCount: 1))])
        try stream.receive(
            Self.target(.add, [1]), Self.changed("d2", 3), Self.target(.current, [1]), Self.consistent(4))
        expectEqual(stream.snapshots, [["d1": 1], ["d2": 3]])
    }

    @Test
    func `After a reconnect a target is reported when it is complete again, also without changes`() throws {
        var stream = Stream()
        try stream.receive(Self.changed("d1", 1), Self.target(.current), Self.consistent(1))
        _ = stream.state.reconnect()
        try stream.receive(Self.target(.add, [1]), Self.consistent(2), Self.target(.current, [1]), Self.consistent(3))
        expectEqual(stream.snapshots, [["d1": 1], [:]])
    }

    @Test
    func `A target that is listed again has an event also if the list is the same, with its documents apart`() throws {
        var stream = Stream()
        try stream.receive(Self.changed("d1", 1), Self.target(.current), Self.consistent(1))
        try stream.receive(
            Self.target(.reset, [1]), Self.changed("d1", 1), Self.target(.current), Self.consistent(2))
        expectEqual(stream.snapshots, [["d1": 1], [:]])
        expectEqual(stream.confirmed, [[], ["d1"]])
        // Without a list the server says nothing about it.
        try stream.receive(Self.changed("d1", 1), Self.changed("d2", 2), Self.consistent(3))
        expectEqual(stream.snapshots.last, ["d2": 2])
        expectEqual(stream.confirmed.last, [])
    }

    @Test
    func `A target continues from what an earlier process has stored`() throws {
        var state = WatchState(database: "projects/p/databases/d")
        let documents = [UTF8Text(Self.name("d1")): TimestampValue(seconds: 1, nanoseconds: 0)]
        let resumption = WatchState.Resumption(place: .token([7]), documents: documents)
        let request = state.add(1, .documents([]), resume: resumption)
        expectEqual(request.change, .add(ListenTarget(.documents([]), id: 1, resume: .token([7]), expectedCount: 1)))
        var stream = Stream()
        stream.state = state
        try stream.receive(
            Self.changed("d1", 1), Self.changed("d2", 2), Self.target(.current, [1]), Self.consistent(3))
        expectEqual(stream.snapshots, [["d2": 2]])
    }

    @Test
    func `Documents whose ids are the same text in other bytes are different documents`() throws {
        var state = WatchState(database: "projects/p/databases/d")
        _ = state.add(1, .documents([]))
        var snapshots: [WatchedSnapshot] = []
        for response in [
            Self.changed("\u{e9}", 1), Self.changed("e\u{301}", 2), Self.target(.current),
            .filter(ListenResponse.ExistenceFilter(target: 1, count: 2)), Self.consistent(3),
            .documentDelete(Self.deleted("\u{e9}")), Self.consistent(4),
        ] {
            let step = try state.receive(response)
            expect(step.requests.isEmpty)
            for case (_, .snapshot(let snapshot)) in step.events { snapshots.append(snapshot) }
        }
        try #require(snapshots.count == 2)
        expectEqual(snapshots[0].changes.count, 2)
        expectEqual(snapshots[1].changes.keys.map { Array($0.string.utf8) }, [Array(Self.name("\u{e9}").utf8)])
    }

    @Test
    func `A target that the server refuses fails once; the others continue`() throws {
        var stream = Stream()
        _ = stream.state.add(2, .documents([]))
        var refusal = ListenResponse.TargetChange(.remove, targets: [2])
        refusal.cause = StatusMessage(code: .invalidArgument, message: "bad")
        try stream.receive(
            .targetChange(refusal), Self.changed("d1", 1), Self.target(.current, [1]), Self.consistent(1))
        expectEqual(stream.failures, [.invalidArgument])
        expectEqual(stream.snapshots, [["d1": 1]])
        expectEqual(stream.state.reconnect().count, 1)
    }
}
