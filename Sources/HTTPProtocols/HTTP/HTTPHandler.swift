// What a service implements to be reached over HTTP, and how it answers. Whether a request came over HTTP/1.1 or on a
// stream of HTTP/2 makes no difference to it.

package import Basics
package import Calls
package import EventLoops

/// Takes the HTTP requests of one loop; used on that loop's thread only.
package protocol HTTPHandler: AnyObject {
    /// A request has come whole.
    ///
    /// The handler replies through `exchange`, at once or later: by one reply, or by turning it into a call of the
    /// service. Over HTTP/1.1 the next request of the connection is not read before that.
    ///
    /// - Parameters: - head: method, target and headers. - body: without its chunked form, lent for the call of this
    ///   function.
    func handle(_ exchange: HTTPExchange, _ head: HTTPHead, body: RawSpan)

    /// The header fields of a reply that the transport itself makes, because the request is too large, malformed or
    /// too slow.
    ///
    /// - Parameters:
    ///   - head: as much of the request's as has been read.
    ///   - isSecure: whether the client's connection is encrypted.
    func fields(ofRefusal head: HTTPHead, isSecure: Bool) -> [HTTPField]
}

extension HTTPHandler {
    package func fields(ofRefusal head: HTTPHead, isSecure: Bool) -> [HTTPField] { [] }
}

/// A request that waits for its reply: a small value to answer with. All methods are for the thread of ``loop``;
/// answering twice, or after the connection has ended, does nothing.
package struct HTTPExchange: Sendable {
    private let carrier: any HTTPCarrier
    private let number: UInt32

    init(_ carrier: any HTTPCarrier, _ number: UInt32) {
        self.carrier = carrier
        self.number = number
    }

    package var loop: EventLoop { carrier.loop }
    package var peerAddress: String { carrier.peerAddress }
    /// The names of the client's verified certificate, as `URI:spiffe://a/b` or `DNS:job.example`; empty without one.
    package var certificateNames: [String] { carrier.certificateNames }
    /// Whether the request came to a loopback address of this machine.
    package var isLoopback: Bool { carrier.isLoopback }
    /// Whether a proxy has forwarded the request, or one before it on the same connection.
    package var isProxied: Bool { carrier.isProxied }
    /// The address of the other end; nil over no network.
    package var address: NetworkAddress? { carrier.address }
    /// What the other end says about the client, if it is a trusted proxy; nil if it is not.
    package var forwarding: Forwarding? { carrier.forwarding(number) }
    /// Whether the client's connection is encrypted: this one, or the one to a trusted proxy.
    package var isSecure: Bool { carrier.isSecure || carrier.forwarding(number)?.isSecure == true }
    /// Whether the connection carries no other request until this one has its reply, as over HTTP/1.1.
    package var holdsConnection: Bool { carrier.holdsConnection }

    /// What the request shows of its sender.
    ///
    /// - Parameter authorization: nil without one.
    package func origin(authorization: String?) -> RequestOrigin {
        RequestOrigin(number, on: carrier, authorization: authorization)
    }

    /// Adds a header field to whatever the reply will be.
    package func addField(_ name: String, _ value: String) {
        carrier.openReply(number)?.fields.append(HTTPField(name, value))
    }

    /// Takes `value` for the request's `authorization` where it has none; for a call that is begun later.
    package func supplyAuthorization(_ value: String) {
        guard carrier.configuration.keepsAuthorization, let reply = carrier.openReply(number) else { return }
        reply.authorization = reply.authorization ?? value
    }

    /// Replies with the body that `write` appends.
    package func reply(
        _ status: HTTPStatus, contentType: String = "text/plain; charset=utf-8", _ write: (inout ByteBuffer) -> Void
    ) {
        carrier.reply(number, status, contentType: contentType, write)
    }

    /// Replies with a text.
    package func reply(_ status: HTTPStatus, _ text: String) { reply(status) { $0.append(utf8: text) } }

    /// Turns the exchange into a call of a procedure with one request message, whose replies `form` makes into the
    /// body.
    ///
    /// - Parameter deadlineMilliseconds: time that the client gives the call; nil = that of calls which bring none.
    package func beginCall(_ rpc: RPC, _ form: any ReplyForm, deadlineMilliseconds: UInt32? = nil) -> Call {
        carrier.beginCall(number, RequestHead(rpc: rpc, deadlineMilliseconds: deadlineMilliseconds), form)
    }
}
