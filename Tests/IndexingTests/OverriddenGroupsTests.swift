// The groups with overridden fields, against a list of them.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import Indexing

@Suite(.timeLimit(.minutes(20))) struct OverriddenGroupsTests {
    private static func group(
        _ id: String, in database: UInt32, _ modes: FieldOverride.Modes?, _ phase: IndexState.Phase
    ) -> GroupFields {
        let override = FieldOverride(collectionID: id, field: nil, indexes: modes, expires: false)
        return GroupFields(
            database: database, collectionID: id, overrides: [override], previous: [], begun: 0,
            state: IndexState(phase: phase))
    }

    /// What identifies a group, and what was set last.
    private static func description(_ group: GroupFields) -> String {
        let modes = group.overrides.map { $0.indexes.map { "\($0.rawValue)" } ?? "-" }
        return "\(group.database) \(group.collectionID) \(modes) \(group.state.phase)"
    }

    /// What a list of all groups says.
    private func expectSame(_ groups: OverriddenGroups, _ model: [GroupFields], _ place: String) {
        func sorted(_ list: [GroupFields]) -> [String] { list.map(Self.description).sorted() }
        let everything = model + [groups.common]
        expectEqual(sorted(groups.all), sorted(model), "\(place)")
        expectEqual(groups.arePlain, everything.allSatisfy(\.isPlain), "\(place)")
        expectEqual(groups.keepNothing, everything.allSatisfy(\.keepsNothing), "\(place)")
        let working = everything.filter(\.state.hasWork)
        expectEqual(sorted(groups.working), sorted(working), "\(place)")
        expectEqual(groups.hasWork, !working.isEmpty, "\(place)")
        let first = groups.firstWorking { _ in true }
        expectEqual(first.map(Self.description), groups.working.first.map(Self.description), "\(place)")
        let second = groups.firstWorking { $0.collectionID != first?.collectionID }
        let others = groups.working.filter { $0.collectionID != first?.collectionID }
        expectEqual(second.map(Self.description), others.first.map(Self.description), "\(place)")
        for database in UInt32(1)...3 {
            expectEqual(
                sorted(groups.groups(in: database)), sorted(model.filter { $0.database == database }), "\(place)")
            for id in ["a", "b", "ab", "é"] {
                let found = groups.group(Array(id.utf8).byteSpan, in: database)
                let expected = model.first { $0.database == database && $0.collectionID == id }
                expectEqual(found.map(Self.description), expected.map(Self.description), "\(place), \(id)")
            }
        }
    }

    @Test(arguments: UInt64(1)..<9)
    func `Groups are as they were set last, whatever was set and removed`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var groups = OverriddenGroups()
        var model: [GroupFields] = []
        for round in 0..<300 {
            let modes = random.pick([nil, [], .ascending, .contains] as [FieldOverride.Modes?])
            let isWorking = random.oneIn(3)
            if random.oneIn(20) {
                groups.set(Self.group("", in: 0, modes, isWorking ? .building : .complete))
            } else {
                let group = Self.group(
                    random.pick(["a", "b", "ab", "é"]), in: UInt32(1 + random.below(3)), modes,
                    isWorking ? .building : .complete)
                model.removeAll { $0.database == group.database && $0.collectionID == group.collectionID }
                if random.oneIn(3) {
                    groups.remove(group)
                } else {
                    groups.set(group)
                    model.append(group)
                }
            }
            expectSame(groups, model, "seed \(seed), round \(round)")
        }
    }

    @Test
    func `A change costs what the groups of its database cost, also while a reader has the state before it`() {
        // A look at all groups for each change would be a thousand million looks.
        let (databases, each) = (300, 100)
        var groups = OverriddenGroups()
        var readers: [OverriddenGroups] = []
        for number in 0..<(databases * each) {
            groups.set(Self.group("c\(number)", in: UInt32(1 + number % databases), [], .building))
            readers = [groups]
        }
        while let group = groups.firstWorking(where: { _ in true }) {
            groups.set(Self.group(group.collectionID, in: group.database, [], .complete))
            readers = [groups]
        }
        expect(readers[0].all.count == databases * each && !readers[0].arePlain && !readers[0].hasWork)
        for group in groups.all { groups.remove(group) }
        expect(groups.all.isEmpty && groups.arePlain)
    }
}
