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

/// The groups with overridden fields as the commit thread keeps them.
package struct OverriddenGroups {
    package private(set) var all: [GroupFields] = []
    /// What holds for groups that are not in `all`.
    package private(set) var common = GroupFields(
        database: 0, collectionID: "", overrides: [], previous: [], begun: 0, state: IndexState(phase: .complete))
    /// Every write is derived without a look at the groups.
    package private(set) var arePlain = true
    /// No field of any group has entries.
    package private(set) var keepNothing = false
    /// The groups in `all` whose entries are being brought in line with their settings.
    private var workingCount = 0
    /// Positions in `all`.
    private var positions = CollectionGroupTable<Int>()

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

    /// Takes a group in its new state.
    package mutating func set(_ group: GroupFields) {
        if group.isCommon {
            common = group
        } else {
            let work = group.state.hasWork ? 1 : 0
            if let position = positions.value(of: group.idBytes.byteSpan, in: group.database) {
                workingCount += work - (all[position].state.hasWork ? 1 : 0)
                all[position] = group
            } else {
                workingCount += work
                positions.set(all.count, of: group.idBytes, in: group.database)
                all.append(group)
            }
        }
        noteKinds()
    }

    /// Lets go of a group: what is common holds for it.
    package mutating func remove(_ group: GroupFields) {
        guard let position = positions.value(of: group.idBytes.byteSpan, in: group.database) else { return }
        if all.remove(at: position).state.hasWork { workingCount -= 1 }
        positions.set(nil, of: group.idBytes, in: group.database)
        for (position, group) in all.enumerated().dropFirst(position) {
            positions.set(position, of: group.idBytes, in: group.database)
        }
        noteKinds()
    }

    private mutating func noteKinds() {
        arePlain = common.isPlain && all.allSatisfy(\.isPlain)
        keepNothing = common.keepsNothing && all.allSatisfy(\.keepsNothing)
    }

    /// Whether there are steps to take.
    package var hasWork: Bool { workingCount > 0 || common.state.hasWork }

    /// The groups that have steps to take, what is common last.
    package var working: [GroupFields] {
        if !hasWork { return [] }
        return all.filter(\.state.hasWork) + (common.state.hasWork ? [common] : [])
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
        return positions.value(of: id, in: database).map { all[$0] }
    }
}
