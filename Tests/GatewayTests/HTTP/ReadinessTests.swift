// What /readyz tells.

import Testing

@testable import Gateway

@Suite struct ReadinessTests {
    @Test func `A server is ready until it drains`() throws {
        let harness = try Harness()
        let readiness = Readiness(store: harness.store)
        #expect(readiness.obstacle == nil)
        readiness.drain()
        #expect(readiness.obstacle == "the server is draining")
    }
}
