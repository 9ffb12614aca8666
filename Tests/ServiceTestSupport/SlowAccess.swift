// Access control whose decisions take longer than the share of a loop that they have.

package import Basics
package import Calls
package import DocumentModel
package import FirestoreMessages
package import FirestoreService

/// What a caller may do: read all documents but one. Each decision takes longer than a step.
package final class SlowAccess: CallAccess {
    package let isUnrestricted = false
    package let callerName = "test"
    private let denied: String?
    private let turn: () -> UInt64
    /// The loop's turn of each decision about a document.
    package private(set) var turns: [UInt64] = []

    fileprivate init(denied: String?, turn: @escaping () -> UInt64) {
        self.denied = denied
        self.turn = turn
    }

    package func checkGet(_ path: RawSpan, _ state: borrowing JudgedState) throws(RequestError) -> [[UInt8]] {
        turns.append(turn())
        let end = SystemClock.monotonicNanoseconds() + 2 * JudgementStep.nanoseconds
        while SystemClock.monotonicNanoseconds() < end {}
        if String(repairingUTF8: path) == denied { throw .insufficientPermissions }
        return []
    }

    package func checkList(
        _ query: StructuredQuery, parent: RawSpan, _ state: borrowing JudgedState
    ) -> [[UInt8]] { [] }

    package func judge(_ writes: WriteList, _ state: JudgedState) throws(RequestError) -> any WriteJudgement {
        throw .insufficientPermissions
    }

    package func checkStillValid() {}
}

/// Gives the callers of a method a ``SlowAccess``, and permits everything else.
package final class SlowAccessControl: AccessControl, @unchecked Sendable {
    // Sendable: used on the test's thread only.
    package let admitsEveryone = false
    package let generation = 0
    private let method: FirestoreMessages.Method
    private let denied: String?
    /// What the last call got.
    package private(set) var access: SlowAccess?

    /// - Parameter denied: the path of the document that may not be read; nil for none.
    package init(_ method: FirestoreMessages.Method, denying denied: String? = nil) {
        self.method = method
        self.denied = denied
    }

    package func admit(
        _ call: Call, _ method: FirestoreMessages.Method, in database: DatabaseName, reusing last: (any CallAccess)?
    ) -> (any CallAccess)? {
        guard method == self.method else { return nil }
        let loop = call.loop
        access = SlowAccess(denied: denied) { loop.turnNanoseconds }
        return access
    }

    package func retry(_ call: Call, after error: RequestError, _ then: @escaping @Sendable () -> Void) -> Bool {
        false
    }
}
