// Which collections have an id, so that a query of a group does not go through the collections of other ids.
//
// The catalogue is in the order of paths, so the collections of one id may be anywhere in it:
//
//     users  users/1/orders  users/2/orders  ...  users/900000/orders  users/900000/reviews
//
// The first query of the group `reviews` goes through all of them. The keys that it finds are kept here, and the commit
// thread adds those of new collections, so the next query looks up these keys alone.
//
// A list has every collection of its group that any state from then on has. It may have more: collections of commits
// that are not visible yet. So a query looks each key of a list up in the state that it reads.

internal import Basics
internal import Storage
internal import StoreFormat
internal import Synchronization

/// The keys of the catalogue by collection group, for groups that were asked for. Any thread may use it.
final class GroupCollections: Sendable {
    /// What is known of a group.
    enum Known {
        case nothing
        /// More collections than are kept.
        case many
        /// In the order of keys.
        case keys([[UInt8]])
    }

    private struct Group: Hashable {
        let database: UInt32
        let id: [UInt8]
    }

    private struct NewCollection {
        let group: Group
        let key: [UInt8]
        let version: CommitVersion
    }

    private struct State {
        var groups: [Group: Known] = [:]
        /// About the memory of `groups`.
        var byteCount = 0
        /// The newest collections: a list of an earlier state lacks them.
        var newest: [NewCollection] = []
        /// The version of the last collection that was left out of `newest`.
        var forgotten: CommitVersion

        /// Adds a key to the list of its group, if there is one.
        mutating func add(_ key: [UInt8], to group: Group) {
            guard case .keys(var keys)? = groups[group] else { return }
            let place = keys.partitioningIndex { $0.byteSpan.compareBytes(key.byteSpan) >= 0 }
            if place < keys.count, keys[place] == key { return }
            // Until the list is put back it has one owner.
            groups[group] = .many
            if keys.count == GroupCollections.collectionsMax {
                byteCount -= GroupCollections.bytes(of: keys)
                return
            }
            keys.insert(key, at: place)
            byteCount += GroupCollections.bytes(of: [key])
            groups[group] = .keys(keys)
        }

        mutating func remove(_ group: Group) {
            guard let known = groups.removeValue(forKey: group) else { return }
            byteCount -= GroupCollections.bytes(of: [group.id])
            if case .keys(let keys) = known { byteCount -= GroupCollections.bytes(of: keys) }
        }
    }

    private let state: Mutex<State>

    /// Collections of a group that are kept: the look-ups of more take longer than to go through a catalogue.
    static let collectionsMax = 4_096
    private static let bytesMax = 8 << 20
    private static let newestMax = 1_024

    /// About the memory of keys or ids.
    private static func bytes(of keys: [[UInt8]]) -> Int { keys.reduce(0) { $0 + $1.count + 64 } }

    /// - Parameter version: of the newest state, without the collections that will be added.
    init(after version: CommitVersion) { state = Mutex(State(forgotten: version)) }

    /// - Parameter database: the number that stands for the database in keys.
    func known(of id: [UInt8], in database: UInt32) -> Known {
        state.withLock { $0.groups[Group(database: database, id: id)] ?? .nothing }
    }

    /// Keeps what was found in the catalogue.
    ///
    /// - Parameters:
    ///   - keys: in order; nil if there are more than `collectionsMax`.
    ///   - version: of the state that was read.
    func keep(_ keys: [[UInt8]]?, of id: [UInt8], in database: UInt32, at version: CommitVersion) {
        let group = Group(database: database, id: id)
        state.withLock { state in
            // Collections that came after that state are perhaps not known any more.
            if state.forgotten > version { return }
            state.remove(group)
            if state.byteCount > Self.bytesMax { (state.groups, state.byteCount) = ([:], 0) }
            state.byteCount += Self.bytes(of: [id]) + Self.bytes(of: keys ?? [])
            state.groups[group] = keys.map { .keys($0) } ?? .many
            for collection in state.newest where collection.group == group { state.add(collection.key, to: group) }
        }
    }

    /// Adds a collection that a commit has made, before the commit is visible.
    ///
    /// - Parameter key: of the collection in the catalogue.
    func add(_ key: [UInt8], of id: [UInt8], at version: CommitVersion) {
        let group = Group(database: DocumentKey.database(of: key.byteSpan), id: id)
        state.withLock { state in
            if state.newest.count == Self.newestMax {
                // Half of them at a time, so that the others seldom move.
                state.forgotten = state.newest[Self.newestMax / 2 - 1].version
                state.newest.removeFirst(Self.newestMax / 2)
            }
            state.newest.append(NewCollection(group: group, key: key, version: version))
            state.add(key, to: group)
        }
    }
}
