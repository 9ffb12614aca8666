// The one authorisation point. Every method asks it before it touches the store. If the caller may not do everything,
// the method asks again for each document, query and write.

package import Basics
package import Calls
package import DocumentModel
package import DocumentStore
package import FirestoreMessages
package import Storage

/// Decides who may call. One object serves all loops of a server. Thread-safe.
package protocol AccessControl: AnyObject, Sendable {
    /// Decides whether a call may be made.
    ///
    /// - Parameters:
    ///   - method: what is called.
    ///   - database: the database that the call is about.
    ///   - last: what the same loop got for its last call, to be returned again if it fits.
    /// - Returns: what the caller may do; nil if that is everything for as long as the call lasts.
    /// - Throws: `UNAUTHENTICATED` or `PERMISSION_DENIED`, which become the call's answer.
    func admit(
        _ call: Call, _ method: FirestoreMessages.Method, in database: DatabaseName, reusing last: (any CallAccess)?
    ) throws(RequestError) -> (any CallAccess)?

    /// Whether each call that came through no proxy may do everything, so that nobody need look at it.
    var admitsEveryone: Bool { get }

    /// Asks for what a refused call may have lacked, for example keys of a token's issuer.
    ///
    /// - Parameter then: called on any thread when the call may be tried again.
    /// - Returns: whether `then` will be called.
    func retry(_ call: Call, after error: RequestError, _ then: @escaping @Sendable () -> Void) -> Bool

    /// Changes whenever streams have to be looked at again: other rules, other principals.
    var generation: Int { get }
}

/// What the caller of a call may do. Confined to the loop.
package protocol CallAccess: AnyObject {
    /// Whether every document may be read and written, and administrative methods called.
    var isUnrestricted: Bool { get }

    /// The user's identifier or the principal's name, for operators.
    var callerName: String { get }

    /// Decides whether a document may be read by its name.
    ///
    /// - Parameters:
    ///   - path: below `documents`.
    ///   - state: what is read, and what rules read.
    /// - Returns: the paths of the documents that the decision rests on.
    /// - Throws: `PERMISSION_DENIED`.
    @discardableResult
    func checkGet(_ path: RawSpan, _ state: borrowing JudgedState) throws(RequestError) -> [[UInt8]]

    /// Decides whether a query may be run: whether everything that it could return may be read.
    ///
    /// - Parameter parent: the path of the parent below `documents`; empty for the root.
    /// - Returns: the paths of the documents that the decision rests on.
    /// - Throws: `PERMISSION_DENIED`.
    @discardableResult
    func checkList(
        _ query: StructuredQuery, parent: RawSpan, _ state: borrowing JudgedState
    ) throws(RequestError) -> [[UInt8]]

    /// Begins to decide whether writes may stand.
    ///
    /// - Throws: why the writes fail whatever the decision.
    func judge(_ writes: WriteList, _ state: JudgedState) throws(RequestError) -> any WriteJudgement

    /// Makes sure that the credential is still valid and the call would still be admitted.
    ///
    /// - Throws: `UNAUTHENTICATED`, `PERMISSION_DENIED`.
    func checkStillValid() throws(RequestError)

    /// Counts a commit of a call before its writes are judged.
    ///
    /// - Throws: `RESOURCE_EXHAUSTED` beyond a limit of the caller.
    func beginCommit(_ call: Call) throws(RequestError)

    /// Counts a target that is listened to, until ``closeListener()``.
    ///
    /// - Throws: `RESOURCE_EXHAUSTED` beyond a limit of the caller; then it is not counted.
    func openListener() throws(RequestError)

    /// Discounts a target that ``openListener()`` has counted.
    func closeListener()
}

/// Callers without limits.
extension CallAccess {
    package func beginCommit(_ call: Call) {}
    package func openListener() {}
    package func closeListener() {}
}

/// A decision about the writes of a commit, in steps between which other calls have their turn. Confined to the loop.
package protocol WriteJudgement: AnyObject {
    /// Decides on some of the writes.
    ///
    /// - Returns: what the decision rests on; nil if there is more to decide.
    /// - Throws: `PERMISSION_DENIED`; `pending`, after which the step is made again.
    func step() throws(RequestError) -> CommitBasis?
}

/// A step of decisions, from its creation on. After it other calls of the loop have their turn.
package struct JudgementStep {
    /// How long a step takes, about.
    package static let nanoseconds: UInt64 = 1_000_000

    private let end = SystemClock.monotonicNanoseconds() + nanoseconds

    package init() {}

    package var isOver: Bool { SystemClock.monotonicNanoseconds() > end }
}

/// The state of a database that a decision looks at.
package struct JudgedState {
    package let reader: StoreReader
    /// Without a transaction, which would take note of what rules read.
    package let point: ReadPoint
    /// What reads of rules do that meet bytes which are not in memory.
    package let cold: ColdRead

    /// - Parameter cold: `.pends` for a caller that asks again after `pending`.
    package init(_ reader: StoreReader, _ point: ReadPoint, _ cold: ColdRead = .waits) {
        self.reader = reader
        self.point = point.withoutTransaction
        self.cold = cold
    }

    /// Microseconds after which a state is not the present one any more.
    private static let presentMicroseconds: UInt64 = 5_000_000

    /// The present state if this one is of the past; nil if it is of the last seconds.
    package func present() throws(RequestError) -> JudgedState? {
        let newest = reader.publishedMicroseconds
        if point.readMicroseconds >= newest { return nil }
        let now = SystemClock.microseconds()
        // By a clock that was set back, for which commits are in the future, no state is of the past.
        let isSetBack = newest > now + Self.presentMicroseconds
        if !isSetBack, now <= point.readMicroseconds + Self.presentMicroseconds { return nil }
        return JudgedState(reader, try reader.readPoint(.latest, in: point.database), cold)
    }
}

extension CallAccess {
    /// For methods that only administrators may call.
    package func requireUnrestricted() throws(RequestError) {
        if !isUnrestricted { throw .insufficientPermissions }
    }
}

extension RequestError {
    /// What rules deny. The text is the cloud's.
    package static let insufficientPermissions = RequestError(
        .permissionDenied, "Missing or insufficient permissions.")
}
