// A client that listens to a collection for as long as it likes, at one server after the other.

import DocumentModel
import FirestoreMessages
import HearthClient
import Synchronization
import TestSupport

/// Keeps what it has when its stream ends, and resumes at another server. Thread-safe.
final class FaithfulListener: Sendable {
    fileprivate struct State {
        /// By name: the number in the document's id.
        var documents: [String: Int] = [:]
        /// The update times that were seen.
        var newest: [String: TimestampValue] = [:]
        var token: [UInt8] = []
        var readTime: TimestampValue?
        var problems: [String] = []
        var isStopped = false
        var current: HearthClient?
    }

    private let nodes: [ClusterNode]
    private let collection: String
    private let database: DatabaseName
    private let state = Mutex(State())

    init(_ nodes: [ClusterNode], collection: String) throws {
        self.nodes = nodes
        self.collection = collection
        database = try DatabaseName(project: "hearth")
    }

    /// The numbers of the documents that it has.
    var numbers: Set<Int> { state.withLock { Set($0.documents.values) } }

    /// What was wrong with what it got.
    var problems: [String] { state.withLock { $0.problems } }

    func stop() {
        let client = state.withLock { state in
            state.isStopped = true
            return state.current.take()
        }
        Task { await client?.close() }
    }

    /// Listens until it is stopped.
    func run() async {
        var place = 0
        while !state.withLock({ $0.isStopped }) {
            do {
                try await listen(at: nodes[place % nodes.count])
            } catch {
                try? await Task.sleep(for: .milliseconds(20))
            }
            place += 1
        }
    }

    private func listen(at node: ClusterNode) async throws {
        let client = try ClusterWriter.client(of: node)
        state.withLock { $0.current = client }
        defer { Task { await client.close() } }
        var target = ListenTarget(
            .query(
                parent: database.documentsRoot,
                StructuredQuery(from: [CollectionSelector(collectionID: collection)])), id: 1)
        let token = state.withLock { $0.token }
        if !token.isEmpty { target.resume = .token(token) }
        let messages = client.listen([ListenRequest(database: "\(database)", .add(target))])
        while let message = try await messages.next() { try take(message) }
    }

    private func take(_ message: ListenResponse) throws {
        switch message {
        case .targetChange(let change):
            state.withLock { state in
                if change.kind == .reset { state.documents = [:] }
                if !change.resumeToken.isEmpty { state.token = change.resumeToken }
                guard let time = change.readTime else { return }
                if let last = state.readTime, time < last { state.problems.append("read time \(time) after \(last)") }
                state.readTime = time
            }
        case .documentChange(let change):
            let document = try HearthClient.decode { try NamedDocument(message: change.document.byteSpan) }.get()
            state.withLock { state in
                change.targets.contains(1) ? state.put(document) : state.remove(document.name)
            }
        case .documentDelete(let removal), .documentRemove(let removal):
            state.withLock { $0.remove(removal.name) }
        case .filter, .unknown: break
        }
    }
}

extension FaithfulListener.State {
    fileprivate mutating func put(_ document: NamedDocument) {
        let (name, time) = (document.name, document.content.updateTime)
        if let last = newest[name], time < last { problems.append("\(name) of \(time) after one of \(last)") }
        newest[name] = time
        documents[name] = Int(name.split(separator: "/").last?.dropFirst() ?? "") ?? -1
    }

    fileprivate mutating func remove(_ name: String) { documents[name] = nil }
}
