// The overridden fields of a collection group, and how far its entries are in line with them.
//
//     06 | database, 4 | collection id, <= 248    ->
//         | state length | state | begun, 8 | id length | id | number of settings | settings | earlier settings | ...
//         | documents visited, varint | declared at, 8 |
//
// A group whose settings no declaration has changed has no `declared at`, and neither has one of an earlier version.
//
// The entry of database 0 without an id stands for all groups of all databases that have none: with indexes on demand
// it keeps no field's entries, or still those of all fields if the directory had them.
//
// When overrides change, commits go by the new ones at once. The documents of the group are then walked in logged
// steps, as for a declared index, until every entry that is not kept any more is gone and every new one is there.
// Until then fields that changed are not read through their entries, and a commit removes whatever of them may be
// there.

package import Basics
package import DocumentModel
package import Storage
package import StorageEngines
internal import StoreFormat

/// The fields of one collection group.
package struct GroupFields: Sendable {
    /// The number that stands for the database in keys.
    package let database: UInt32
    /// The id of the group's collections, without a path.
    package let collectionID: String
    /// The same as UTF-8.
    package let idBytes: [UInt8]
    /// The overrides that hold from now on; empty when all were lifted.
    package let overrides: [FieldOverride]
    /// Those that entries may still follow: several if overrides changed faster than the entries.
    package let previous: [[FieldOverride]]
    /// The commit from which on entries are of one of the settings above, in microseconds.
    package let begun: UInt64
    /// `building` while entries are brought in line, else `complete`.
    package var state: IndexState
    /// Documents that the walk under way has visited.
    package var visited: Int
    /// The commit of the last declaration that changed the overrides, in microseconds; 0 if none did, or it was not
    /// noted.
    package var declaredAt: UInt64
    /// Which entries commits write and queries read, from the overrides of now and before.
    package let rules: FieldRules

    package init(
        database: UInt32, collectionID: String, overrides: [FieldOverride], previous: [[FieldOverride]], begun: UInt64,
        state: IndexState, visited: Int = 0, declaredAt: UInt64 = 0
    ) {
        self.database = database
        self.collectionID = collectionID
        idBytes = Array(collectionID.utf8)
        self.overrides = overrides
        self.previous = previous
        self.begun = begun
        self.state = state
        self.visited = visited
        self.declaredAt = declaredAt
        rules = FieldRules(overrides, previous: previous)
    }

    /// Stands for all groups without an entry.
    package var isCommon: Bool { database == 0 }

    /// The group with other overrides, from a commit on.
    /// - Parameter start: the first document to go over; nil if there are no entries to bring in line.
    package func changed(to wanted: [FieldOverride], at version: CommitVersion, start: [UInt8]?) -> GroupFields {
        if Self.entries(wanted) == Self.entries(overrides) {
            // Only the last use of entries, or what expires.
            return GroupFields(
                database: database, collectionID: collectionID, overrides: wanted, previous: previous, begun: begun,
                state: state, visited: visited, declaredAt: declaredAt)
        }
        let earlier = state.hasWork ? previous + (previous.contains(overrides) ? [] : [overrides]) : [overrides]
        var changed = GroupFields(
            database: database, collectionID: collectionID, overrides: wanted, previous: earlier,
            begun: state.hasWork ? begun : version.microseconds, state: state, declaredAt: declaredAt)
        if !state.hasWork, !changed.rules.changeAnything {
            // Nothing about entries: documents expire, or no longer.
            return GroupFields(
                database: database, collectionID: collectionID, overrides: wanted, previous: previous, begun: begun,
                state: state, declaredAt: declaredAt)
        }
        changed.state =
            start.map { IndexState(phase: .building, position: $0) }
            ?? IndexState(phase: .complete, completeSince: version.microseconds)
        return changed
    }

    /// What settings say of entries, without anything else.
    private static func entries(_ overrides: [FieldOverride]) -> Set<FieldOverride> {
        Set(
            overrides.filter { $0.indexes != nil }.map {
                FieldOverride(
                    collectionID: "", field: $0.field, indexes: $0.indexes, lastUse: $0.isAdaptive ? 0 : nil)
            })
    }

    /// To what end a write walks a document.
    package var purpose: FieldRules.Purpose { state.hasWork ? .writeDuringChange : .write }

    /// Writes do not depend on the group.
    package var isPlain: Bool { overrides.allSatisfy { $0.indexes == nil } && !state.hasWork }

    /// A write changes no entries of fields.
    package var keepsNothing: Bool { state.hasWork ? rules.haveNoEntries : rules.kindsKept.isEmpty }

    /// The field whose time makes documents expire.
    package var expiringField: FieldPath? { overrides.first(where: \.expires)?.field }

    // MARK: Layout

    /// Replaces what is in `writer` by the key under which this is stored.
    package func writeKey(into writer: inout ByteBuffer) {
        writer.reset()
        writer.append(byte: KeySpace.overrides.rawValue)
        writer.append(bigEndian: database)
        writer.append(utf8: collectionID)
        writer.cutKeyPart(from: KeyLayout.pathOffset)
    }

    /// Replaces what is in `writer` by the value that is stored.
    package func writeValue(into writer: inout ByteBuffer) {
        var part = ByteBuffer(capacity: 64)
        state.append(to: &part)
        writer.reset()
        writer.appendVarint(UInt64(part.count))
        writer.append(part.bytes)
        writer.append(littleEndian: begun)
        writer.appendVarint(UInt64(idBytes.count))
        writer.append(idBytes)
        writer.appendVarint(UInt64(1 + previous.count))
        FieldOverride.append(overrides, to: &writer)
        for settings in previous { FieldOverride.append(settings, to: &writer) }
        writer.appendVarint(UInt64(visited))
        if declaredAt != 0 { writer.append(littleEndian: declaredAt) }
    }

    /// Reads a group's entry; nil when it is none.
    package init?(key: RawSpan, value: RawSpan) {
        guard key.byteCount >= KeyLayout.pathOffset, key[byteAt: 0] == KeySpace.overrides.rawValue else { return nil }
        var reader = WireReader(value)
        guard let stateBytes = try? reader.lengthDelimited(), let state = IndexState(stateBytes),
            let begun = try? reader.fixed64(), let id = try? reader.lengthDelimited(), let count = try? reader.varint(),
            count > 0, count <= value.byteCount, let overrides = FieldOverride.list(&reader)
        else { return nil }
        var previous: [[FieldOverride]] = []
        for _ in 1..<count {
            guard let settings = FieldOverride.list(&reader) else { return nil }
            previous.append(settings)
        }
        let visited = reader.isAtEnd ? 0 : try? reader.varint()
        let declaredAt = reader.isAtEnd ? 0 : try? reader.fixed64()
        self.init(
            database: DocumentKey.database(of: key), collectionID: String(repairingUTF8: id), overrides: overrides,
            previous: previous, begun: begun, state: state, visited: Int(clamping: visited ?? 0),
            declaredAt: declaredAt ?? 0)
    }
}

/// The fields of a collection as queries may use them.
package enum IndexedFields: Sendable {
    /// None of them has entries to rely on.
    case none
    case all
    case some(FieldRules, isSettled: Bool)

    /// Whether some fields may have entries.
    package var areSome: Bool {
        if case .none = self { false } else { true }
    }

    /// Whether the field has entries of a kind, all of them.
    package func has(_ kind: EntryKinds, of field: FieldPath) -> Bool {
        switch self {
        case .none: false
        case .all: true
        case .some(let rules, let isSettled): rules.kinds(of: field, isSettled: isSettled).contains(kind)
        }
    }
}

extension GroupFields {
    /// What readers of a version may rely on.
    func indexed(at version: CommitVersion) -> IndexedFields {
        if version.microseconds < begun { return .none }
        let isSettled = state.isComplete(at: version)
        if isSettled, isPlain { return .all }
        return .some(rules, isSettled: isSettled)
    }
}

/// The groups with overridden fields as the commit thread keeps them. A change costs what the groups of its database
/// cost, however many there are of others.
package struct OverriddenGroups {
    /// Those of a database, in the order in which they came.
    private struct OfDatabase {
        var groups: [GroupFields] = []
        var working = 0
    }

    /// What holds for groups without separate settings.
    package private(set) var common = GroupFields(
        database: 0, collectionID: "", overrides: [], previous: [], begun: 0, state: IndexState(phase: .complete))
    /// Without databases that have none.
    private var databases: [UInt32: OfDatabase] = [:]
    /// Positions among those of the database.
    private var positions = CollectionGroupTable<Int>()
    /// Databases of which groups have steps to take, in their order.
    private var workingDatabases: [UInt32] = []
    /// Groups that are not plain, and groups that keep something, without what is common.
    private var (notPlain, keeping) = (0, 0)

    package init() {}

    /// Reads all groups.
    package init(latest: LatestReader) throws(StorageError) {
        try latest.forEach(in: .overrides) { (key, value) throws(StorageError) in
            guard let group = GroupFields(key: key, value: value) else {
                throw StorageError(.corrupt, "the overridden fields of a collection group cannot be read")
            }
            set(group)
        }
    }

    /// All groups with separate settings. Looks at all databases.
    package var all: [GroupFields] { databases.sorted { $0.key < $1.key }.flatMap(\.value.groups) }

    /// The groups of a database.
    package func groups(in database: UInt32) -> [GroupFields] { databases[database]?.groups ?? [] }

    /// Every write is derived without a look at the groups.
    package var arePlain: Bool { notPlain == 0 && common.isPlain }

    /// No field of any group has entries.
    package var keepNothing: Bool { keeping == 0 && common.keepsNothing }

    /// Takes a group in its new state.
    package mutating func set(_ group: GroupFields) {
        if group.isCommon {
            common = group
            return
        }
        var (known, place) = (GroupFields?.none, position(of: group))
        if let place {
            known = databases[group.database]?.groups[place]
            databases[group.database]?.groups[place] = group
        } else {
            place = databases[group.database]?.groups.count ?? 0
            positions.set(place, of: group.idBytes, in: group.database)
            databases[group.database, default: OfDatabase()].groups.append(group)
        }
        count(group, instead: known)
    }

    /// Lets go of a group: what is common holds for it. The last one of its database takes its place.
    package mutating func remove(_ group: GroupFields) {
        guard let place = position(of: group), let last = databases[group.database]?.groups.popLast() else { return }
        var removed = last
        positions.set(nil, of: group.idBytes, in: group.database)
        if let known = databases[group.database]?.groups, place < known.count {
            removed = known[place]
            databases[group.database]?.groups[place] = last
            positions.set(place, of: last.idBytes, in: group.database)
        }
        count(nil, instead: removed)
        if databases[group.database]?.groups.isEmpty == true { databases[group.database] = nil }
    }

    private func position(of group: GroupFields) -> Int? {
        positions.value(of: group.idBytes.byteSpan, in: group.database)
    }

    /// Counts a group in place of another one of its database.
    private mutating func count(_ group: GroupFields?, instead known: GroupFields?) {
        guard let database = (group ?? known)?.database else { return }
        let kinds = [(group, 1), (known, -1)]
        for case (let group?, let sign) in kinds {
            if !group.isPlain { notPlain += sign }
            if !group.keepsNothing { keeping += sign }
            if group.state.hasWork { databases[database]?.working += sign }
        }
        workingDatabases.note(database, isMember: databases[database]?.working ?? 0 > 0)
    }

    /// Whether there are steps to take.
    package var hasWork: Bool { !workingDatabases.isEmpty || common.state.hasWork }

    /// The groups that have steps to take, what is common last.
    package var working: [GroupFields] {
        workingDatabases.flatMap { groups(in: $0).filter(\.state.hasWork) } + (common.state.hasWork ? [common] : [])
    }

    /// The first of them that is wanted.
    package func firstWorking(where isWanted: (GroupFields) -> Bool) -> GroupFields? {
        for database in workingDatabases {
            let group = groups(in: database).first { $0.state.hasWork && isWanted($0) }
            if let group { return group }
        }
        return common.state.hasWork && isWanted(common) ? common : nil
    }

    /// What holds for the group that a document belongs to; nil if every entry is kept.
    package func settings(ofDocument path: RawSpan, in database: UInt32) -> GroupFields? {
        if arePlain { return nil }
        let settings = group(KeyedDocument.collectionID(ofDocument: path), in: database) ?? common
        return settings.isPlain ? nil : settings
    }

    /// The group with its own settings; for database 0 what is common.
    package func group(_ id: RawSpan, in database: UInt32) -> GroupFields? {
        if database == 0 { return common }
        return positions.value(of: id, in: database).flatMap { databases[database]?.groups[$0] }
    }
}
