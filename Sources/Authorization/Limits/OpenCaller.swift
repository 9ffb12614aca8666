internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreService

/// A caller of an open server, which may do everything within the limits of its network. Confined to its loop.
final class OpenCaller: CallAccess {
    let limited: LimitedCaller
    /// Whose limits these are.
    let network: NetworkAddress
    let isUnrestricted = true
    /// Nobody says who calls.
    let callerName = ""

    init(_ limiter: CallerLimiter, _ network: NetworkAddress) {
        limited = LimitedCaller(limiter, limiter.shares(of: .anonymous, at: network))
        self.network = network
    }

    func checkGet(_ path: RawSpan, _ state: borrowing JudgedState) -> [[UInt8]] { [] }

    func checkList(_ query: StructuredQuery, parent: RawSpan, _ state: borrowing JudgedState) -> [[UInt8]] { [] }

    func judge(_ writes: WriteList, _ state: JudgedState) -> any WriteJudgement { ScopeJudgement() }

    func checkStillValid() {}

    func beginCommit(_ call: Call) throws(RequestError) { try limited.beginCommit(call) }

    func openListener() throws(RequestError) { try limited.openListener() }

    func closeListener() { limited.closeListener() }
}
