// What the limit of file descriptors leaves for connections.

import Glibc
import TestSupport
import Testing

@testable import EventLoops

@Suite(.timeLimit(.minutes(20))) struct DescriptorBudgetTests {
    @Test func `Connections and refusals stay below the limit with a reserve`() throws {
        let budget = try #require(DescriptorBudget(connections: 10_000, refusals: 64, limit: 1_024, inUse: 30))
        expectEqual(budget.refusals, 64)
        expectEqual(budget.connections, 1_024 - 30 - DescriptorBudget.reserve - 64)
    }

    @Test func `What fits is granted as asked`() {
        let budget = DescriptorBudget(connections: 10_000, refusals: 64, limit: 20_000, inUse: 30)
        expect(budget?.connections == 10_000 && budget?.refusals == 64)
    }

    @Test func `A small limit leaves one connection before it leaves none`() {
        let needed = 30 + DescriptorBudget.reserve + 1
        let least = DescriptorBudget(connections: 10_000, refusals: 64, limit: needed, inUse: 30)
        expect(least?.connections == 1 && least?.refusals == 0)
        expectNil(DescriptorBudget(connections: 10_000, refusals: 64, limit: needed - 1, inUse: 30))
    }

    @Test func `The process's own descriptors are counted`() {
        let before = DescriptorBudget.descriptorsInUse()
        let descriptor = open("/dev/null", O_RDONLY)
        expect(DescriptorBudget.descriptorsInUse() > before)
        expect(DescriptorLimit.current > 0)
        close(descriptor)
    }
}
