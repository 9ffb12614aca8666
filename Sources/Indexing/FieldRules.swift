// Which entries of a document are kept where that is not all: the overrides of a collection group, ready to be walked
// beside the fields of a document.
//
//     *      exempt                 root         none         b         none, below it
//     a      ascending              ├─ a         values       ├─ b.c    all
//     b.c    ascending, contains    └─ b         none         └─ other  none
//
// While the entries of a group are being brought in line with new overrides, those of fields that stood otherwise
// before may be there or not; such are said to have changed.

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
        var children: [Place] = []
        /// The node of fields inside that have no separate one.
        var others: Place = 0
        /// Entries of the field or of fields inside it are or were kept.
        var hasEntries = true
    }

    private var nodes: [Node] = []

    /// Stands for all fields that have nothing around them.
    static let root: Place = 0

    /// - Parameter previous: what else entries may be of.
    init(_ overrides: [FieldOverride], previous: [[FieldOverride]]) {
        let paths = Set((previous + [overrides]).joined().compactMap { $0.field?.utf8Segments })
        _ = add([], paths, overrides, previous)
    }

    private mutating func add(
        _ path: [[UInt8]], _ paths: Set<[[UInt8]]>, _ overrides: [FieldOverride], _ previous: [[FieldOverride]]
    ) -> Place {
        let kept = EntryKinds(FieldOverride.modes(of: path, by: overrides))
        let changed = previous.reduce(EntryKinds()) { changed, earlier in
            changed.union(kept.symmetricDifference(EntryKinds(FieldOverride.modes(of: path, by: earlier))))
        }
        let inherited = EntryKinds(FieldOverride.inheritedModes(of: path, by: overrides))
        let changedInherited = previous.reduce(EntryKinds()) { changed, earlier in
            changed.union(
                inherited.symmetricDifference(EntryKinds(FieldOverride.inheritedModes(of: path, by: earlier))))
        }
        let place = nodes.count
        nodes.append(Node(name: path.last ?? [], kept: kept, changed: changed))
        nodes.append(Node(name: [], kept: inherited, changed: changedInherited))
        nodes[place].others = place + 1
        nodes[place + 1].others = place + 1
        nodes[place + 1].hasEntries = !inherited.union(changedInherited).isEmpty
        var hasEntries = nodes[place + 1].hasEntries || !kept.union(changed).isEmpty
        let names = Set(paths.filter { $0.count > path.count && $0.starts(with: path) }.map { $0[path.count] })
        for name in names.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            let child = add(path + [name], paths, overrides, previous)
            nodes[place].children.append(child)
            if nodes[child].hasEntries { hasEntries = true }
        }
        nodes[place].hasEntries = hasEntries
        return place
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
        for child in nodes[place].children {
            let known = nodes[child].name
            if known.byteSpan.equalsBytes(name) { return child }
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
