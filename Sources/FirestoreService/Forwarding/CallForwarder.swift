package import Basics
package import Calls
package import FirestoreMessages

/// Has calls answered by the server that takes the writes, where this server is not that one. One for each loop, and
/// confined to it.
package protocol CallForwarder: AnyObject {
    /// Whether another server takes the writes, or it is not known which. It can change at any time.
    var isNeeded: Bool { get }

    /// Whether reads see everything that was acknowledged, at whichever server, when they were asked.
    var readsAreStrict: Bool { get }

    /// Has the other server answer a call.
    ///
    /// - Parameters:
    ///   - method: one that is forwarded (``FirestoreMessages/Method/forwarding``).
    ///   - request: its first message, lent.
    /// - Throws: `UNAUTHENTICATED` for a credential that is refused, `RESOURCE_EXHAUSTED` if too many calls wait.
    func forward(
        _ call: Call, _ method: FirestoreMessages.Method, _ request: RawSpan, isInTransaction: Bool
    ) throws(RequestError)

    /// Calls back on the loop when everything is visible here that was acknowledged before, or with `UNAVAILABLE` when
    /// the other server did not answer in time. Not called if the call is over by then.
    ///
    /// - Parameter isListener: the call is one of the long-lived streams, which are bounded elsewhere.
    /// - Throws: `RESOURCE_EXHAUSTED` if too many reads wait.
    func whenNewest(
        _ call: Call, isListener: Bool, _ completion: @escaping (Result<Void, RequestError>) -> Void
    ) throws(RequestError)
}
