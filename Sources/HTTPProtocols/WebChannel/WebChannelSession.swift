internal import Basics

/// The server's side of one WebChannel session as a value without I/O: messages of the page in, numbered arrays out.
///
///     POST  ofs, messages ──▶ receive ──▶ (in order, once each) ──▶ takeMessage ──▶ the call
///     GET   AID           ──▶ acknowledge, openBackChannel
///     the call ──▶ append ──▶ arrays ──▶ takeFrame ──▶ the back channel
///                               └── kept until acknowledged; sent again on each new back channel
///
/// A page has one back channel at a time. A streaming one stays open and gets a frame for what has gathered; a long
/// poll ends with its first frame. Times are monotonic milliseconds.
struct WebChannelSession {
    /// An open GET.
    private struct BackChannel {
        /// When the hold of a long poll ends; nil for a streaming one.
        let holdsUntil: UInt64?
        /// The last array that was handed to it, or that the page had when it opened it.
        var sentID: UInt64
        var sentAt: UInt64
        /// The response ends with what there is.
        var endsNow = false
    }

    /// What the back channel sends next.
    struct Output: Equatable {
        /// Empty if the response only ends.
        let frame: [UInt8]
        /// Whether the response ends with it.
        let isLast: Bool
    }

    /// What the passing of time asks for.
    enum Due: Equatable {
        case nothing
        /// There may be a frame to send.
        case output
        /// The page is gone.
        case expired
    }

    let limits: WebChannelLimits

    /// The number of the next message to deliver.
    private var nextMessage: UInt64 = 0
    /// Messages that may be delivered, in order.
    private var ready: [[UInt8]] = []
    private var readyStart = 0
    /// Messages that came before one with a lower number.
    private var early: [UInt64: [UInt8]] = [:]
    private(set) var waitingBytes = 0

    /// Arrays that are not acknowledged, in order of their numbers.
    private var arrays: [WebChannelFrame.Numbered] = []
    private var arrayBytes = 0
    private var lastID: UInt64 = 0
    /// The highest number that any back channel was given.
    private var sentID: UInt64 = 0
    private var backChannel: BackChannel?
    /// No further array comes.
    private(set) var isEnded = false
    /// When the page last sent a request, or its back channel ended.
    private var heardAt: UInt64

    init(limits: WebChannelLimits, now: UInt64) {
        self.limits = limits
        heardAt = now
    }

    /// Bytes of messages that the session holds.
    var heldBytes: Int { waitingBytes + arrayBytes }
    /// Further memory of these messages: the heads of their blocks, what the allocator rounds up, and the records that
    /// hold them.
    var overheadBytes: Int { arrays.count * 24 + (ready.count - readyStart + early.count) * 72 }
    /// Whether the service may add a message.
    var hasRoom: Bool {
        let max = limits.unacknowledgedBytesMax
        return !isEnded && arrayBytes < (hasBackChannel ? max : min(limits.unreadBytesMax, max))
    }
    /// Whether nothing is left to send or to repeat.
    var isFinished: Bool { isEnded && arrays.isEmpty }
    var hasBackChannel: Bool { backChannel != nil }

    // MARK: Messages of the page

    /// Takes the messages of one request. Those that were taken before are dropped.
    ///
    /// - Parameter first: the number of the first one.
    /// - Throws: RESOURCE_EXHAUSTED if more wait than may. None of the request's messages is taken then.
    mutating func receive(_ messages: [[UInt8]], from first: UInt64, now: UInt64) throws(RequestError) {
        heardAt = now
        guard !isEnded else { return }
        let bytes = messages.reduce(0) { $0 + $1.count }
        guard ready.count - readyStart + early.count + messages.count <= limits.waitingMessagesMax,
            waitingBytes + bytes <= limits.waitingBytesMax,
            // A number that far ahead would wait for messages that cannot all wait.
            first <= nextMessage + UInt64(limits.waitingMessagesMax)
        else { throw RequestError(.resourceExhausted, "The page sends messages faster than they are processed.") }
        for (index, message) in messages.enumerated() {
            let number = first + UInt64(index)
            guard number >= nextMessage, early[number] == nil else { continue }
            early[number] = message
            waitingBytes += message.count
        }
        while let next = early.removeValue(forKey: nextMessage) {
            ready.append(next)
            nextMessage += 1
        }
    }

    /// The next message to deliver; nil when there is none.
    mutating func takeMessage() -> [UInt8]? {
        guard readyStart < ready.count else { return nil }
        let message = ready[readyStart]
        ready[readyStart] = []
        readyStart += 1
        // Also while a message always waits: the page decides that.
        if 2 * readyStart >= ready.count {
            ready.removeFirst(readyStart)
            readyStart = 0
        }
        waitingBytes -= message.count
        return message
    }

    // MARK: Arrays of the server

    /// Adds an array whose payload is this JSON text.
    mutating func append(_ payload: [UInt8]) {
        guard !isEnded else { return }
        lastID += 1
        arrays.append(WebChannelFrame.Numbered(id: lastID, payload: payload))
        arrayBytes += Self.size(payload)
    }

    /// Adds the last array: the session ends when the page has it.
    ///
    /// - Parameter dropsRest: whether the page does not get the arrays before it.
    mutating func end(with payload: [UInt8], dropsRest: Bool = false) {
        if dropsRest, !isEnded {
            arrays = []
            arrayBytes = 0
        }
        append(payload)
        isEnded = true
        early = [:]
        ready = []
        readyStart = 0
        waitingBytes = 0
    }

    /// The page has the arrays up to this one.
    ///
    /// - Returns: false if there was no such array.
    mutating func acknowledge(_ id: UInt64, now: UInt64) -> Bool {
        guard id <= lastID else { return false }
        heardAt = now
        let count = arrays.prefix { $0.id <= id }.count
        for array in arrays[..<count] { arrayBytes -= Self.size(array.payload) }
        arrays.removeFirst(count)
        return true
    }

    /// The reply to a request with messages: whether there is a back channel, the last array sent, and the bytes that
    /// are sent and not acknowledged.
    func reply() -> [UInt8] {
        let unacknowledged = arrays.last.map { $0.id <= sentID } == true ? arrayBytes : unacknowledgedSent
        return WebChannelFrame.text(Array("[\(hasBackChannel ? 1 : 0),\(sentID),\(unacknowledged)]".utf8))
    }

    private var unacknowledgedSent: Int { arrays.prefix { $0.id <= sentID }.reduce(0) { $0 + Self.size($1.payload) } }

    /// What an array costs, with the record that holds it.
    private static func size(_ payload: [UInt8]) -> Int { payload.count + 48 }

    private mutating func appendNoop() { append(Array("[\"noop\"]".utf8)) }

    // MARK: The back channel

    /// The page has opened a back channel, which replaces the one that is open.
    ///
    /// A streaming one gets something at once: the page finds out by it whether a proxy holds responses back.
    ///
    /// - Parameters:
    ///   - id: the last array that the page has; ``acknowledge(_:now:)`` was called with it.
    ///   - holdMilliseconds: how long a long poll waits for something to say; nil for a streaming one.
    mutating func openBackChannel(after id: UInt64, holdMilliseconds: UInt64?, now: UInt64) {
        let hold = holdMilliseconds.map { now + min($0, limits.keepAliveMilliseconds) }
        backChannel = BackChannel(holdsUntil: hold, sentID: id, sentAt: now)
        if hold == nil, lastID == id { appendNoop() }
    }

    /// The back channel is gone.
    mutating func closeBackChannel(now: UInt64) {
        guard backChannel != nil else { return }
        backChannel = nil
        heardAt = now
    }

    /// The response of the back channel, if there is one, ends with the next output.
    ///
    /// Each response has at least one frame, because a page takes an empty one for a failure.
    mutating func yieldBackChannel() {
        guard let open = backChannel else { return }
        backChannel?.endsNow = true
        if open.holdsUntil != nil, lastID == open.sentID { appendNoop() }
    }

    /// What the back channel is to send now; nil when there is nothing or no back channel.
    mutating func takeOutput(now: UInt64) -> Output? {
        guard let open = backChannel else { return nil }
        // The numbers have no gaps.
        let sentCount = arrays.first.map { open.sentID < $0.id ? 0 : Int(open.sentID - $0.id) + 1 } ?? 0
        let unsent = arrays[min(sentCount, arrays.count)...]
        if unsent.isEmpty, !isEnded, !open.endsNow { return nil }
        backChannel?.sentID = lastID
        backChannel?.sentAt = now
        sentID = lastID
        let isFull = arrayBytes >= limits.unacknowledgedBytesMax
        let isLast = open.holdsUntil != nil || open.endsNow || isEnded || isFull
        let frame = unsent.isEmpty ? [] : WebChannelFrame.text(unsent)
        if isLast { closeBackChannel(now: now) }
        return Output(frame: frame, isLast: isLast)
    }

    // MARK: Time

    /// When ``tick(now:)`` has something to do.
    var dueAt: UInt64 {
        guard let open = backChannel else { return heardAt + limits.idleMilliseconds }
        return open.holdsUntil ?? open.sentAt + limits.keepAliveMilliseconds
    }

    /// Does what is due.
    mutating func tick(now: UInt64) -> Due {
        guard now >= dueAt else { return .nothing }
        guard backChannel != nil else { return .expired }
        appendNoop()
        return .output
    }
}
