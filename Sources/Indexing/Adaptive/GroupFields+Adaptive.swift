// Indexes on demand as settings of collection groups.
//
//     common   * none                    groups without an entry keep no field's entries
//     users    * none, age values        made on demand: the values of age
//     logs     * none (declared)         a declared entry for a field, a map around it or * decides alone
//
// A directory that had all entries begins with `* all` in place of `* none`: they stay until they have been unused for
// as long as any other index. Fields that queries have used in this time then keep theirs.

internal import DocumentModel

extension FieldOverride {
    /// The entry on demand for all fields without another one.
    package static func others(keepingAll: Bool, since seconds: UInt64) -> FieldOverride {
        FieldOverride(collectionID: "", field: nil, indexes: keepingAll ? .automatic : [], lastUse: seconds)
    }

    /// Whether the entry says what happens to a field.
    package func covers(_ path: [[UInt8]]) -> Bool {
        indexes != nil && path.starts(with: field?.utf8Segments ?? [])
    }
}

extension GroupFields {
    /// The declared entries.
    package var declared: [FieldOverride] { overrides.filter { !$0.isAdaptive } }

    /// The entries on demand.
    package var adaptive: [FieldOverride] { overrides.filter(\.isAdaptive) }

    /// When the store began to count the use of entries that it had for all fields; nil if it has not, or no longer.
    package var allKeptSince: UInt64? {
        overrides.first { $0.isAdaptive && $0.field == nil && $0.indexes == .automatic }?.lastUse
    }

    /// The indexes on demand, with the time of their last use in seconds since 1970.
    package var adaptiveIndexes: [(index: AdaptiveIndex, lastUse: UInt64)] {
        overrides.compactMap { entry in
            guard let lastUse = entry.lastUse, let field = entry.field, let modes = entry.indexes else { return nil }
            return (
                AdaptiveIndex(
                    database: database, collectionID: collectionID, field: field, kind: EntryKinds(modes)), lastUse
            )
        }
    }

    /// Whether the store may make and drop the index by itself: no declared entry says what happens to the field.
    package func leavesOpen(_ index: AdaptiveIndex) -> Bool {
        !overrides.contains { !$0.isAdaptive && $0.covers(index.field.utf8Segments) }
    }

    /// Whether readers of the newest version can rely on an index's entries.
    package func isReady(_ index: AdaptiveIndex) -> Bool {
        rules.kinds(of: index.field, isSettled: !state.hasWork).contains(index.kind)
    }

    /// Whether entries are as an entry for a field says, although others may still be brought in line.
    package func hasSettled(_ override: FieldOverride) -> Bool {
        guard let field = override.field else { return false }
        return rules.isUnchanged(field)
    }

    /// Declared entries, with those entries on demand that they leave open.
    package func settings(declaring declared: [FieldOverride]) -> [FieldOverride] {
        declared
            + adaptive.filter { entry in
                !declared.contains { $0.covers(entry.field?.utf8Segments ?? []) }
            }
    }
}

extension OverriddenGroups {
    /// A group with its own settings, or if it has none as what is common, so that its settings can be changed.
    /// - Parameter start: the first document to go over, if what is common is being applied.
    package func group(_ id: String, in database: UInt32, start: [UInt8]) -> GroupFields {
        let bytes = Array(id.utf8)
        if let known = group(bytes.byteSpan, in: database) { return known }
        let state = common.state.hasWork ? IndexState(phase: .building, position: start) : common.state
        return GroupFields(
            database: database, collectionID: id, overrides: common.overrides, previous: common.previous,
            begun: common.begun, state: state)
    }
}
