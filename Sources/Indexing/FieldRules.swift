// Which entries of a document are kept where that is not all: the overrides of a collection group, ready to be walked
// beside the fields of a document.
//
//     *      exempt                 root         none         b         none, below it
//     a      ascending              ├─ a         values       ├─ b.c    all
//     b.c    ascending, contains    └─ b         none         └─ other  none
//
// While the entries of a group are being brought in line with new overrides, those of fields that stood otherwise
// before may be there or not; such are said to have changed.

internal import Basics
internal import DocumentModel

/// Kinds of entries of one field.
package struct EntryKinds: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    /// By value, for both directions.
    package static let values = EntryKinds(rawValue: 1)
    /// By the elements of an array.
    package static let elements = EntryKinds(rawValue: 2)
    static let all: EntryKinds = [.values, .elements]

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    init(_ modes: FieldOverride.Modes) {
        self = modes.isDisjoint(with: [.ascending, .descending]) ? [] : .values
        if modes.contains(.contains) { insert(.elements) }
    }
}

/// The fields of a collection group as a tree.
package struct FieldRules: Sendable {
    /// A field in the tree.
    package typealias Place = Int

    private struct Node {
        var name: [UInt8]
        /// Entries that the group is to have.
        var kept: EntryKinds
        /// Entries that stood otherwise before.
        var changed: EntryKinds
        /// By name.
        var children: [Place] = []
        /// The node of fields inside that have no separate one.
        var others: Place = 0
        /// Entries of the field or of fields inside it are or were kept.
        var hasEntries = true

        var mayHaveEntries: Bool { !kept.union(changed).isEmpty }
    }

    private var nodes: [Node] = []

    /// Stands for all fields that have nothing around them.
    static let root: Place = 0

    /// What one list of overrides says, by path: `FieldOverride.modes(of:by:)` and `inheritedModes(of:by:)` without a
    /// search in the list.
    private struct Settings {
        private var own: [[[UInt8]]: FieldOverride.Modes] = [:]
        private var exact: [[[UInt8]]: FieldOverride.Modes] = [:]

        init(_ overrides: [FieldOverride]) {
            for override in overrides {
                let path = override.field?.utf8Segments ?? []
                if override.isAdaptive, !path.isEmpty {
                    exact[path, default: []].formUnion(override.indexes ?? [])
                } else if let modes = override.indexes, own[path] == nil {
                    own[path] = modes
                }
            }
        }

        /// - Parameter around: the modes that the map around the field gives to fields in it.
        func inheritedModes(of path: [[UInt8]], around: FieldOverride.Modes) -> FieldOverride.Modes {
            own[path] ?? around
        }

        /// - Parameter inherited: the modes without entries on demand.
        func modes(of path: [[UInt8]], inherited: FieldOverride.Modes) -> FieldOverride.Modes {
            exact[path] ?? inherited
        }
    }

    /// - Parameter previous: what else entries may be of.
    init(_ overrides: [FieldOverride], previous: [[FieldOverride]]) {
        let paths = Set((previous + [overrides]).joined().compactMap { $0.field?.utf8Segments })
        let sorted = paths.sorted { one, other in
            one.lexicographicallyPrecedes(other) { $0.lexicographicallyPrecedes($1) }
        }
        let settings = ([overrides] + previous).map { Settings($0) }
        _ = add([], sorted[...], settings, around: settings.map { _ in .automatic })
    }

    /// Adds a field and the fields inside it.
    ///
    /// - Parameters:
    ///   - paths: all paths that begin with the field's, sorted.
    ///   - settings: those of now, then those of before.
    ///   - around: the modes that the map around the field gives to fields in it, by each of the settings.
    private mutating func add(
        _ path: [[UInt8]], _ paths: ArraySlice<[[UInt8]]>, _ settings: [Settings], around: [FieldOverride.Modes]
    ) -> Place {
        let inherited = zip(settings, around).map { $0.inheritedModes(of: path, around: $1) }
        let place = nodes.count
        nodes.append(Self.node(path.last ?? [], zip(settings, inherited).map { $0.modes(of: path, inherited: $1) }))
        nodes.append(Self.node([], inherited))
        nodes[place].others = place + 1
        nodes[place + 1].others = place + 1
        nodes[place + 1].hasEntries = nodes[place + 1].mayHaveEntries
        var hasEntries = nodes[place + 1].hasEntries || nodes[place].mayHaveEntries
        var left = paths.drop { $0.count == path.count }
        while let name = left.first?[path.count] {
            let inside = left.prefix { $0[path.count] == name }
            left = left.dropFirst(inside.count)
            let child = add(path + [name], inside, settings, around: inherited)
            nodes[place].children.append(child)
            if nodes[child].hasEntries { hasEntries = true }
        }
        nodes[place].hasEntries = hasEntries
        return place
    }

    /// - Parameter modes: of now, then those of before.
    private static func node(_ name: [UInt8], _ modes: [FieldOverride.Modes]) -> Node {
        let kinds = modes.map { EntryKinds($0) }
        let changed = kinds.dropFirst().reduce(EntryKinds()) { $0.union(kinds[0].symmetricDifference($1)) }
        return Node(name: name, kept: kinds[0], changed: changed)
    }

    /// No entry of a field, or of a field inside it, stood otherwise before.
    func isUnchanged(_ field: FieldPath) -> Bool { isUnchanged(place(of: field)) }

    private func isUnchanged(_ place: Place) -> Bool {
        let node = nodes[place]
        return node.changed.isEmpty && nodes[node.others].changed.isEmpty && node.children.allSatisfy(isUnchanged)
    }

    private func place(of field: FieldPath) -> Place {
        var place = FieldRules.root
        for segment in field.utf8Segments { place = self.field(segment.byteSpan, in: place) }
        return place
    }

    /// Entries that some field is to have.
    var kindsKept: EntryKinds { nodes.reduce(EntryKinds()) { $0.union($1.kept) } }

    /// No entry is or was kept.
    var haveNoEntries: Bool { !nodes[FieldRules.root].hasEntries }

    /// Some entries stood otherwise before.
    var changeAnything: Bool { !nodes.allSatisfy(\.changed.isEmpty) }

    /// A field inside another.
    package func field(_ name: RawSpan, in place: Place) -> Place {
        let children = nodes[place].children
        var (from, to) = (0, children.count)
        while from < to {
            let middle = (from + to) / 2
            let known = nodes[children[middle]].name
            let order = known.byteSpan.compareBytes(name)
            if order == 0 { return children[middle] }
            if order < 0 { from = middle + 1 } else { to = middle }
        }
        return nodes[place].others
    }

    /// Whether entries of the field or of fields inside it are or were kept.
    func hasEntries(_ place: Place) -> Bool { nodes[place].hasEntries }

    // MARK: Entries to put and to remove

    /// The purpose for which a document is walked.
    package enum Purpose {
        /// A write; everything is as the rules say.
        case write
        /// A write while entries are being adapted to new rules: entries that may exist are removed.
        case writeDuringChange
        /// Entries that are not kept any more.
        case removed
        /// Entries that were not kept before.
        case added
        /// Entries that certainly exist, and entries that may exist.
        case certain, uncertain
    }

    /// Entries to put for a value that the document has.
    func puts(_ place: Place, _ purpose: Purpose) -> EntryKinds {
        let node = nodes[place]
        return switch purpose {
        case .write, .writeDuringChange: node.kept
        case .added: node.kept.intersection(node.changed)
        case .certain: node.kept.subtracting(node.changed)
        case .uncertain: node.changed
        case .removed: []
        }
    }

    /// Entries to remove of a value that the document had.
    func removals(_ place: Place, _ purpose: Purpose) -> EntryKinds {
        let node = nodes[place]
        return switch purpose {
        case .write: node.kept
        case .writeDuringChange: node.kept.union(node.changed)
        case .removed: node.changed.subtracting(node.kept)
        case .added, .certain, .uncertain: []
        }
    }

    /// The entries of a field that readers can rely on.
    /// - Parameter isSettled: entries are in line with the rules.
    func kinds(of field: FieldPath, isSettled: Bool) -> EntryKinds {
        let place = place(of: field)
        return isSettled ? nodes[place].kept : nodes[place].kept.subtracting(nodes[place].changed)
    }
}
