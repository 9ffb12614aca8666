// One call as its handler sees it: a small value to answer with.

package import Basics
package import DocumentModel

/// A call that a client made, wherever it came from.
///
/// A value of one reference and one number; copy it freely. All methods are for the thread of ``loop``; another thread gets
/// there by `call.loop.execute { ... }`. Answering a call that is over does nothing, so a handler need not
/// track cancellations to be correct, only to save work.
package struct Call: Sendable {
    /// The connection it came over.
    package let carrier: CallCarrier
    /// Its number on that connection; (carrier, stream) names the call for ever.
    package let stream: UInt32

    package init(carrier: CallCarrier, stream: UInt32) {
        self.carrier = carrier
        self.stream = stream
    }

    package var loop: EventLoop { carrier.loop }

    /// Whether an answer can still reach the client.
    package var isOpen: Bool { carrier.isOpen(stream) }

    /// Answers with one message, which `write` appends to the connection's output, and status OK.
    package func respond(_ write: (inout WireWriter) -> Void) {
        guard var output = carrier.beginMessage(stream) else { return }
        write(&output)
        carrier.endMessage(stream, output, isLast: true)
    }

    /// Answers with one message, which `write` appends to the connection's output, and status OK.
    ///
    /// When `write` throws, what it appended is dropped and the call stays open.
    package func respond<Failure: Error>(_ write: (inout WireWriter) throws(Failure) -> Void) throws(Failure) {
        guard var output = carrier.beginMessage(stream) else { return }
        do {
            try write(&output)
        } catch {
            carrier.abandonMessage(output)
            throw error
        }
        carrier.endMessage(stream, output, isLast: true)
    }

    /// Sends one message of a streaming reply now, whatever the client's window says; for few and small ones. Long
    /// replies go through ``stream(_:)``.
    package func send<Failure: Error>(_ write: (inout WireWriter) throws(Failure) -> Void) throws(Failure) {
        guard var output = carrier.beginMessage(stream) else { return }
        do {
            try write(&output)
        } catch {
            carrier.abandonMessage(output)
            throw error
        }
        carrier.endMessage(stream, output, isLast: false)
    }

    /// Ends the call without a message: an error, or OK after messages were sent.
    package func finish(_ code: StatusCode, _ message: String = "") { carrier.finish(stream, code, message) }

    /// Ends the call with an error.
    package func fail(_ code: StatusCode, _ message: String) { finish(code, message) }

    /// Ends the call with an error, as the layers above know it.
    package func fail(_ error: RequestError) { finish(error.code, error.message) }

    /// Has `source` asked for the messages of the reply as fast as the client takes them.
    package func stream(_ source: any ResponseSource) { carrier.stream(stream, source) }

    /// A source that was `waiting` has something again.
    package func resume() { carrier.resume(stream) }

    /// Something that the handler wants to find again with the call; nil when there is nothing or the call is over.
    package var context: AnyObject? {
        get { carrier.context(stream) }
        nonmutating set { carrier.setContext(stream, newValue) }
    }

    /// Asks the client of a bidirectional call to stop sending: no more than a window's worth of messages follows.
    package func holdMessages() { carrier.setHeld(stream, true) }

    /// Lets the client go on.
    package func releaseMessages() { carrier.setHeld(stream, false) }

    /// Whether clients can say who they are in the protocol that the call came over.
    package var carriesCredentials: Bool { carrier.carriesCredentials }

    /// What the client's `authorization` field says; nil without one, and unless ``ServerConfiguration/keepsAuthorization``.
    package var authorization: String? { carrier.authorization(stream) }

    /// Milliseconds left until the call's deadline; nil without one.
    package var remainingMilliseconds: UInt64? { carrier.remainingMilliseconds(stream) }
}

extension Call: Hashable {
    package static func == (left: Call, right: Call) -> Bool {
        left.carrier === right.carrier && left.stream == right.stream
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(carrier))
        hasher.combine(stream)
    }
}
