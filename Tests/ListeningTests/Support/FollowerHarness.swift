// A store that follows the one of a harness, with a separate hub.

import Basics
import DocumentStore
import Storage
import TestSupport

@testable import Listening

/// A server that follows. It gets records, and answers to its questions, when the test calls for it.
final class FollowerHarness {
    let store: DocumentStore
    let hub: ListenHub
    /// Wake-ups of the hub so far.
    let wakeUps = ListenHarness.WakeUps()
    private let leader: ListenHarness
    private let directory = TemporaryDirectory("hearth-listen-follower")
    /// What waits for the answer to the question which version is the newest.
    var questions: [(Result<Void, RequestError>) -> Void] = []

    init(of leader: ListenHarness) throws {
        self.leader = leader
        var configuration = StoreConfiguration(directory: directory.path(of: "data"))
        configuration.clock = leader.clock
        configuration.leader = "leader:1"
        store = try DocumentStore.open(configuration)
        hub = ListenHub(store, limits: leader.limits, reader: store.makeReader()) { [wakeUps] in wakeUps.add() }
    }

    deinit { store.close() }

    /// Applies the next records of the leader; all of them make the store readable up to the leader's present time.
    func follow(atMost count: Int = .max) throws {
        let closed = leader.store.currentReadTime
        let records = try leader.store.records(after: store.publishedVersion)
        var batch = FollowedRecords()
        var left = count
        var isAll = false
        while left > 0, !isAll {
            isAll = try !records.next()
            if !isAll { batch.append(records.record, version: records.version) }
            left -= 1
        }
        let done = Monitor<Result<Void, RequestError>?>(nil)
        store.follow(batch) { result in done.update { $0 = result } }
        try done.wait { $0 }.get()
        if isAll { store.closeTimes(through: closed) }
    }

    /// Answers the questions with what the leader has acknowledged by now.
    func answerQuestions() {
        let (asked, newest) = (questions, leader.store.publishedVersion.microseconds)
        questions = []
        for question in asked { hub.whenVisible(newest, question) }
    }
}
