// Which listeners a changed document may concern.

import Basics
import DocumentModel
import FirestoreMessages

/// The documents among which a listener looks for its results.
enum ListenScope: Hashable {
    /// By its full name.
    case document(UTF8Text)
    /// The documents of one collection, by its full name.
    case collection(UTF8Text)
    /// The documents of all collections with an id.
    case group(UTF8Text)
    /// All documents.
    case everything

    init(_ kind: ListenTarget.Kind) {
        switch kind {
        case .documents(let names): self = .document(UTF8Text(names.first ?? ""))
        case .query(let parent, let query):
            guard let selector = query?.from.first, query?.from.count == 1 else {
                self = .everything
                return
            }
            self =
                selector.allDescendants
                ? .group(UTF8Text(selector.collectionID)) : .collection("\(parent)/\(selector.collectionID)")
        case .invalidQuery, .pipeline: self = .everything
        }
    }
}

/// The channels of an engine by what they are about, so that a change costs the channels that it may concern.
struct ListenRoutes {
    /// By their scopes and numbers.
    private var channels: [ListenScope: [Int: SyncEngine.Channel]] = [:]
    /// How many channels are about single documents.
    private var documentCount = 0
    /// The channels of the collection that was asked for last: changes come in runs.
    private var latest: (collection: [UInt8], channels: [SyncEngine.Channel]) = ([], [])

    mutating func add(_ channel: SyncEngine.Channel) {
        channels[channel.scope, default: [:]][channel.number] = channel
        changed(channel, by: 1)
    }

    mutating func remove(_ channel: SyncEngine.Channel) {
        channels[channel.scope]?[channel.number] = nil
        if channels[channel.scope]?.isEmpty ?? false { channels[channel.scope] = nil }
        changed(channel, by: -1)
    }

    private mutating func changed(_ channel: SyncEngine.Channel, by count: Int) {
        if case .document = channel.scope { documentCount += count }
        latest = ([], [])
    }

    /// The channels that a document may concern, by its full name.
    mutating func channels(of name: String) -> [SyncEngine.Channel] {
        name.withUTF8Span { find(collection: RelativePath.dropLast($0)) }
        guard documentCount > 0, let channels = channels[.document(UTF8Text(name))] else { return latest.channels }
        return latest.channels + channels.values
    }

    /// Makes the channels of a collection the latest ones.
    private mutating func find(collection: RawSpan) {
        if collection.equalsBytes(latest.collection.byteSpan) { return }
        let id = RelativePath.lastSegment(collection)
        let scopes: [ListenScope] = [
            .collection(UTF8Text(String(repairingUTF8: collection))), .group(UTF8Text(String(repairingUTF8: id))),
            .everything,
        ]
        latest = ([UInt8](copying: collection), scopes.flatMap { channels[$0].map { Array($0.values) } ?? [] })
    }
}
