// Which listeners a changed document may concern.

import FirestoreMessages

/// The documents among which a listener looks for its results.
enum ListenScope: Hashable {
    /// By its full name.
    case document(Substring)
    /// The documents of one collection, by its full name.
    case collection(Substring)
    /// The documents of all collections with an id.
    case group(Substring)
    /// All documents.
    case everything

    init(_ kind: ListenTarget.Kind) {
        switch kind {
        case .documents(let names): self = .document(Substring(names.first ?? ""))
        case .query(let parent, let query):
            guard let selector = query?.from.first, query?.from.count == 1 else {
                self = .everything
                return
            }
            self =
                selector.allDescendants
                ? .group(Substring(selector.collectionID)) : .collection("\(parent)/\(selector.collectionID)")
        case .invalidQuery, .pipeline: self = .everything
        }
    }
}

/// The channels of an engine by what they are about, so that a change costs the channels that it may concern.
struct ListenRoutes {
    private var channels: [ListenScope: [SyncEngine.Channel]] = [:]
    /// How many channels are about single documents.
    private var documentCount = 0
    /// The channels of the collection that was asked for last: changes come in runs.
    private var latest: (collection: Substring, channels: [SyncEngine.Channel]) = ("", [])

    mutating func add(_ channel: SyncEngine.Channel) {
        channels[channel.scope, default: []].append(channel)
        changed(channel, by: 1)
    }

    mutating func remove(_ channel: SyncEngine.Channel) {
        channels[channel.scope]?.removeAll { $0 === channel }
        if channels[channel.scope]?.isEmpty ?? false { channels[channel.scope] = nil }
        changed(channel, by: -1)
    }

    private mutating func changed(_ channel: SyncEngine.Channel, by count: Int) {
        if case .document = channel.scope { documentCount += count }
        latest = ("", [])
    }

    /// The channels that a document may concern, by its full name.
    mutating func channels(of name: String) -> [SyncEngine.Channel] {
        let collection = name[..<(name.utf8.lastIndex(of: Self.slash) ?? name.startIndex)]
        if latest.collection != collection {
            let id = collection.utf8.lastIndex(of: Self.slash).map { collection[collection.utf8.index(after: $0)...] }
            let scopes: [ListenScope] = [.collection(collection), .group(id ?? collection), .everything]
            latest = (collection, scopes.flatMap { channels[$0] ?? [] })
        }
        return documentCount == 0 ? latest.channels : latest.channels + (channels[.document(name[...])] ?? [])
    }

    private static var slash: UInt8 { UInt8(ascii: "/") }
}
