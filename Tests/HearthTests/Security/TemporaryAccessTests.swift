// The access control of servers that commands start for themselves.

import Authorization
import Calls
import FirestoreService
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20)))
struct TemporaryAccessTests {
    @Test
    func `Only the command that starts a server is served by it`() throws {
        let log = Log(level: .error) { _ in }
        let (authorization, token) = try TemporaryAccess.make(log)
        let other = try TemporaryAccess.make(log).token
        func permits(_ header: String?) -> Bool {
            authorization.permits(RequestOrigin(authorization: header), for: .administration)
        }
        expect(permits("Bearer \(token)"))
        for header in [nil, "Bearer \(other)", "Bearer owner", "Bearer \(token)x"] { expect(!permits(header)) }
    }
}
