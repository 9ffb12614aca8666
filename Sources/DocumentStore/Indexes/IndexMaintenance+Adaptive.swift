// The commit thread's part in the indexes on demand: changes of the mode, and of the settings of collection groups.
//
// Both are records of definitions, like those of a declaration, so recovery and readers need nothing else to know of
// them. The walks that follow are those of overridden fields.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import Storage

extension IndexMaintenance {
    /// Whether automatic indexes are to be kept in a mode.
    func isWanted(_ mode: AutomaticIndexes) -> Bool {
        switch mode {
        case .on, .adaptive: true
        case .off: false
        case .unchanged: state.phase != .off || isNew
        }
    }

    /// Whether the store is not yet in a mode or on the way there.
    func mustChange(toEnter mode: AutomaticIndexes) -> Bool {
        !definitions(entering: mode, at: .zero).isEmpty || isWanted(mode) != (state.phase != .off)
    }

    /// The definitions that a change of the mode needs; none if the store is in it.
    func definitions(entering mode: AutomaticIndexes, at version: CommitVersion) -> [IndexDefinition] {
        let start = state.isKept ? Self.documents(of: 0).from : nil
        switch mode {
        case .off, .unchanged: return []
        case .on:
            return ([groups.common] + groups.all).filter { !$0.adaptive.isEmpty }.map {
                .group($0.changed(to: $0.declared, at: version, start: start), isDropped: false)
            }
        case .adaptive:
            let isEntered = !groups.common.adaptive.isEmpty
            if isEntered, state.isKept || groups.common.allKeptSince == nil { return [] }
            let others = FieldOverride.others(keepingAll: state.isKept, since: version.microseconds / 1_000_000)
            return ([groups.common] + groups.all).map { group in
                .group(group.changed(to: group.settings(for: others), at: version, start: start), isDropped: false)
            }
        }
    }

    /// Decides the settings of groups that changes of the indexes on demand lead to.
    ///
    /// - Parameters:
    ///   - changes: none forgets groups that need no settings.
    ///   - record: takes the record of the change.
    /// - Returns: false if nothing has to change.
    func decide(_ changes: [IndexChange], at version: CommitVersion, into record: inout ByteBuffer) -> Bool {
        let start = state.isKept ? Self.documents(of: 0).from : nil
        var drafts = GroupDrafts(groups, start: start ?? [])
        for change in changes {
            switch change {
            case .make(let index, let lastUse): drafts.set(index, lastUse: lastUse)
            case .touch(let index, let lastUse): drafts.touch(index, lastUse: lastUse)
            case .drop(let index): drafts.set(index, lastUse: nil)
            case .dropOthers(let unusedSince): drafts.dropOthers(unusedSince: unusedSince)
            }
        }
        var definitions = drafts.changed.map { draft in
            IndexDefinition.group(
                draft.group.changed(to: draft.overrides, at: version, start: start), isDropped: false)
        }
        if changes.isEmpty { definitions = redundantGroups.map { .group($0, isDropped: true) } }
        if definitions.isEmpty { return false }
        DefinitionRecord.write(from: [], to: [], definitions, into: &record)
        return true
    }

    /// The groups whose settings say no more than what is common, and need no entry.
    var redundantGroups: [GroupFields] {
        guard groups.common.keepsNothing, !groups.common.state.hasWork else { return [] }
        return groups.all.filter { group in
            !group.state.hasWork && group.declared.isEmpty && group.adaptiveIndexes.isEmpty && group.keepsNothing
        }
    }
}

extension GroupFields {
    /// The settings with another entry on demand for all other fields.
    fileprivate func settings(for others: FieldOverride) -> [FieldOverride] {
        if declared.contains(where: { $0.covers([]) }) { return declared }
        return declared + [others] + adaptive.filter { $0.field != nil }
    }
}

/// New settings of groups, each begun from those that it has.
private struct GroupDrafts {
    private let groups: OverriddenGroups
    private let start: [UInt8]
    private var drafts: [(group: GroupFields, overrides: [FieldOverride])] = []

    init(_ groups: OverriddenGroups, start: [UInt8]) {
        self.groups = groups
        self.start = start
    }

    /// The drafts that differ from what is.
    var changed: [(group: GroupFields, overrides: [FieldOverride])] {
        drafts.filter { $0.overrides != $0.group.overrides }
    }

    private mutating func position(of index: AdaptiveIndex) -> Int {
        position(of: groups.group(index.collectionID, in: index.database, start: start))
    }

    private mutating func position(of group: GroupFields) -> Int {
        let known = drafts.firstIndex {
            $0.group.database == group.database && $0.group.idBytes == group.idBytes
        }
        if let known { return known }
        drafts.append((group, group.overrides))
        return drafts.count - 1
    }

    /// Makes an index, or drops it with nil.
    mutating func set(_ index: AdaptiveIndex, lastUse: UInt64?) {
        let position = position(of: index)
        guard drafts[position].group.leavesOpen(index) else { return }
        let entry = index.override(lastUse: 0)
        drafts[position].overrides.removeAll { $0.ignoringUse == entry }
        if let lastUse { drafts[position].overrides.append(index.override(lastUse: lastUse)) }
    }

    /// Notes a use; makes the entry where all fields have entries anyway.
    mutating func touch(_ index: AdaptiveIndex, lastUse: UInt64) {
        let position = position(of: index)
        let exists = drafts[position].group.adaptiveIndexes.contains { $0.index == index }
        guard exists || drafts[position].group.allKeptSince != nil else { return }
        set(index, lastUse: lastUse)
    }

    /// Gives up the entries of all fields without an index on demand, and indexes that are unused.
    mutating func dropOthers(unusedSince: UInt64) {
        for group in [groups.common] + groups.all where group.allKeptSince != nil {
            let position = position(of: group)
            let kept = drafts[position].overrides.filter { entry in
                guard entry.isAdaptive else { return true }
                return entry.field != nil && (entry.lastUse ?? 0) > unusedSince
            }
            drafts[position].overrides = kept + [.others(keepingAll: false, since: unusedSince)]
        }
    }
}
