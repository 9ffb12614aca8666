// The seam between the service and the tongues it is reached by.
//
//     Hearth frames --\
//     gRPC (HTTP/2) ---+--> ServiceCall --> FirestoreService --> DocumentStore
//     REST (HTTP/1) --/      method, request bytes in; reply bytes out
//
// A front turns whatever stood on its wire into a method and the protobuf bytes of a request, and offers a `ServiceCall` by
// which the service answers in protobuf bytes. The service knows no more of a front than this file. It is generic over the
// call's type and compiled once for each front, so that the seam costs nothing on a point read. Tests are a front too.

package import Basics
package import DocumentModel
package import DocumentStore
package import Transport

/// One call as its front hands it to the service: a small value by which it is answered.
///
/// A call is answered exactly once, by ``respond(_:)``, ``fail(_:)`` or ``stream(_:)``. All three belong to the thread of the
/// loop that began the call; ``onLoop(_:)`` brings other threads there. Answering a call that is over already (the peer gave
/// up, its deadline passed, the connection is gone) does nothing.
package protocol ServiceCall: Sendable {
    /// By what a repetition of this request is known; nil where the front or the client has none.
    var requestIdentifier: RequestIdentifier? { get }

    /// Nobody but this call's client has had anything to do on this loop for a while, and it makes one call at a time: the loop
    /// may be held up for as long as a sync takes.
    var isAlone: Bool { get }

    /// Who calls, as far as the front can tell.
    var principal: Principal { get }

    var method: Method { get }

    /// Notes how long the call took; comes once, when its end is decided.
    func noteTime(in counters: ServiceCounters)

    /// Answers with OK and the one message that `write` appends to the connection's output. When `write` throws, what it
    /// appended is dropped and the call is still to be answered.
    func respond<Failure: Error>(_ write: (inout WireWriter) throws(Failure) -> Void) throws(Failure)

    /// Ends the call with a status that is not OK.
    func fail(_ error: RequestError)

    /// Answers with the messages that the source yields, at the pace at which the peer takes them.
    func stream(_ source: any ResponseSource)

    /// Asks the source again that had nothing to send when it was asked last.
    func resume()

    /// Something that the service wants to find again with a call of several messages; nil when there is nothing or the call is
    /// over.
    var context: AnyObject? { get nonmutating set }

    /// Something that the service wants to find again with every call of this connection; it goes when the connection
    /// goes.
    var connectionContext: AnyObject? { get nonmutating set }

    /// Asks the client of a call of several messages to send no more for now: no more than a window's worth follows.
    func holdMessages()

    /// Lets the client go on.
    func releaseMessages()

    /// Runs the body on the thread of the call's loop, after the caller has returned to it; callable on any thread.
    func onLoop(_ body: @escaping @Sendable () -> Void)
}

extension ServiceCall {
    package var isAlone: Bool { false }
}

/// Who makes a call.
package enum Principal: Equatable, Sendable {
    /// Nobody in particular: the native protocol carries no credentials, and its listener is trusted.
    case trusted
    /// A caller with a bearer token, not yet checked. Emulator clients show `owner`.
    case bearer(String)
    /// A caller who showed nothing, or nothing that is understood.
    case anonymous

    /// - Parameter authorization: the value of a request's `authorization` field (RFC 6750, section 2.1).
    init(authorization: String?) {
        let scheme = "bearer "
        if let authorization, authorization.prefix(scheme.count).lowercased() == scheme {
            self = .bearer(String(authorization.dropFirst(scheme.count)))
        } else {
            self = .anonymous
        }
    }
}
