package import Basics
import Calls
package import EventLoops

/// What the request that opens a session, and its connection, say about the page.
package struct WebChannelOrigin: Sendable {
    /// The name of the database from the URL; empty without one.
    package let database: String
    /// The `authorization` of the page; nil without one, and if it is not kept.
    package let authorization: String?
    /// Equal for pages that may be of one browser and share its connections.
    let browser: Int
    /// Who the page's user is; nil if that was not asked, or the credential was refused.
    package var caller: String?

    /// The names of the browser's verified certificate.
    var certificateNames: [String] = []
    /// Whether the request came to a loopback address of this machine.
    var isLoopback = true
    /// Whether a proxy has forwarded the request, or one before it on the same connection.
    var isProxied = false
    /// The address of the other end.
    var address: NetworkAddress?
    /// What the other end says about the client, if it is a trusted proxy.
    var forwarding: Forwarding?
    /// Bytes that the page chose and the session keeps.
    var keptBytes: Int { database.utf8.count + (authorization?.utf8.count ?? 0) }
    /// The network that the session counts for; nil if it counts for none.
    var network: NetworkAddress?

    package init(database: String, authorization: String?, browser: Int) {
        self.database = database
        self.authorization = authorization
        self.browser = browser
    }

    /// What `exchange` says too.
    package init(database: String, authorization: String?, browser: Int, of exchange: HTTPExchange) {
        self.init(database: database, authorization: authorization, browser: browser)
        certificateNames = exchange.certificateNames
        isLoopback = exchange.isLoopback
        isProxied = exchange.isProxied
        address = exchange.address
        forwarding = exchange.forwarding
        network = exchange.origin(authorization: nil).limitedNetwork
    }
}

/// One WebChannel session: a bidirectional call whose messages travel as JSON in many HTTP requests.
///
/// The session lives on the loop of the request that opened it, its home (docs/decisions/0014). Requests that arrive
/// on other loops are handed to it. Members are for the thread of ``loop``, if they do not say otherwise; ``loop``,
/// ``identifier``, ``rpc`` and ``origin`` never change.
package final class WebChannelConnection: TimerTarget, LoopWork, @unchecked Sendable {
    // Sendable: references are passed between threads, state is used on the home loop's thread only.

    package let loop: EventLoop
    package var loopThread: any LoopThread { loop }
    package let peerAddress: String
    package let identifier: String
    package let rpc: RPC
    package var connectionContext: AnyObject?

    let service: any WebChannelService
    unowned let table: WebChannelTable
    package let origin: WebChannelOrigin
    var session: WebChannelSession
    var backChannel: WebChannelBackChannel?
    /// Ends the back channel when the connection is needed for another request; from ``start()`` on.
    var membership: (browser: WebChannelBrowser, number: UInt64)?
    private var timer: (due: UInt64, timer: EventLoop.Timer)?
    /// What the table's sum of bytes includes of ours.
    private var countedBytes = 0
    var isOver = false

    /// The one call of a session.
    struct OpenCall {
        var source: (any ResponseSource)?
        var receiver: (any CallStream)?
        /// The source has nothing, until `resume`.
        var isWaiting = false
        /// The service asks the page to stop; messages wait.
        var isPaused = false
    }

    var call: OpenCall?
    var hasBegun = false
    /// Whether the service has the call and has not ended it.
    package var hasCall: Bool { call != nil }
    var isDelivering = false
    /// Waits for a share of the loop.
    var isWorkDue = false

    /// The number of the one call.
    static let stream: UInt32 = 1
    /// Memory of a session that holds no messages: its objects, a call, and the target of a listener.
    static let fixedBytes = 2_560
    /// Messages of the page that are delivered at once.
    static let messagesPerShare = 16

    init(
        _ identifier: String, _ rpc: RPC, _ service: any WebChannelService, in table: WebChannelTable, loop: EventLoop,
        peerAddress: String, _ origin: WebChannelOrigin
    ) {
        self.identifier = identifier
        self.rpc = rpc
        self.service = service
        self.table = table
        self.loop = loop
        self.peerAddress = peerAddress
        self.origin = origin
        session = WebChannelSession(limits: table.limits, now: loop.nowMilliseconds)
    }

    func start() {
        membership = table.browsers.join(self)
        settle()
    }

    // MARK: Ending

    /// Ends the session with an error that is not of the service.
    ///
    /// - Parameter dropsRest: whether the page does not get what the service has sent before.
    package func fail(_ error: RequestError, dropsRest: Bool = false) {
        guard !isOver, !session.isEnded else { return }
        cancelCall(.client)
        endSession(error.code, error.message, dropsRest: dropsRest)
    }

    func endSession(_ code: StatusCode, _ text: String, dropsRest: Bool = false) {
        var payload = loop.takeWriter()
        if code == .ok {
            payload.append(utf8: "[\"close\"]")
        } else {
            payload.append(utf8: "[")
            HTTPError.append(HTTPStatus(code), "\(code)", text, isPretty: false, to: &payload)
            payload.append(utf8: "]")
        }
        session.end(with: payload.copyBytes(), dropsRest: dropsRest)
        loop.recycle(payload)
        settle()
    }

    /// Ends the call, if it has not ended, without a status.
    func cancelCall(_ reason: CancellationReason) {
        guard let ended = call else { return }
        call = nil
        ended.source?.cancelled()
        service.abandoned(reason)
    }

    /// Ends the session now. The page gets nothing more.
    func close(_ reason: CancellationReason) {
        guard !isOver else { return }
        isOver = true
        table.remove(self)
        cancelCall(reason)
        backChannel?.send([], isLast: true)
        backChannel = nil
        if let membership { table.browsers.leave(self, membership) }
        if let timer { loop.cancel(timer.timer) }
        timer = nil
        _ = table.count(-countedBytes)
        countedBytes = 0
        connectionContext = nil
        service.ended(self)
    }

    // MARK: Output and time

    /// Sends what there is, counts what is kept, and sets the timer. After every change of the session.
    func settle() {
        guard !isOver else { return }
        if let output = session.takeOutput(now: loop.nowMilliseconds) {
            backChannel?.send(output.frame, isLast: output.isLast)
            if output.isLast { forgetBackChannel() }
        }
        let held =
            Self.fixedBytes + origin.keptBytes + session.heldBytes + session.overheadBytes
            + (call?.source?.heldBytes ?? 0)
        let change = held - countedBytes
        countedBytes = held
        if change != 0, !table.count(change), change > 0, !session.isEnded {
            let error = RequestError(.resourceExhausted, "The sessions of the server hold too many bytes.")
            return fail(error, dropsRest: true)
        }
        setTimer()
    }

    private func setTimer() {
        let due = session.dueAt
        // A timer that is too early finds nothing to do and is set again.
        if let timer, timer.due <= due { return }
        if let timer { loop.cancel(timer.timer) }
        let now = loop.nowMilliseconds
        timer = (due, loop.schedule(afterMilliseconds: due > now ? due - now : 0, self))
    }

    package func timerFired(_ token: UInt64) {
        timer = nil
        guard !isOver else { return }
        if session.tick(now: loop.nowMilliseconds) == .expired { return close(.connectionClosed) }
        settle()
    }
}
