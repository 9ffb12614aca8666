// A TCP connection's bytes in both directions, whatever is spoken over it.
//
// Reading. Bytes arrive in the loop's shared buffer and are lent to the driver in place. What the driver cannot use
// yet, a frame that is not complete, is kept in `carry` at its exact size and put in front of the next read; so a
// connection between two frames holds no memory. A frame too large for that gets a separate buffer, which grows with
// the bytes that arrive.
//
// Writing. The driver appends to `output`, a buffer from the loop's pool. At the end of the turn, or of the iteration
// with `gathersOutput`, `flush` tries to write it at once; what the socket does not take becomes `inFlight` and libuv
// finishes it, while new output gathers in another buffer. When more than `highWaterBytes` wait, the channel is
// congested: the driver stops producing and no more is read, until what is in flight has left. A reader that takes
// nearly nothing for `stallMilliseconds` is dropped, as is one for which more than `outputBytesMax` has gathered.
//
// Output that is long, as a streaming reply, is made in shares of the loop (`needsWork`). So is what input asks for
// beyond a slice of time.

package import Basics
import CUV
import Glibc
package import TLS

/// What a channel asks of the protocol spoken over it. Called on the loop's thread.
package protocol ChannelDriver: AnyObject {
    /// Takes what it can of the bytes received and not yet consumed. They are lent for the call.
    func received(_ bytes: RawSpan) -> ReceiveProgress
    /// The turn ends, or the channel is no longer congested: anything to send should be in the output now. What takes
    /// long is left to ``work()``.
    func produce()
    /// Does the work that was asked for with `needsWork`, until the loop's share is spent.
    func work()
    /// The other side has closed its sending side, so nothing more comes.
    ///
    /// - Returns: true if the driver ends the channel when what is under way is sent; false ends it now.
    func inputEnded() -> Bool
    /// The connection is over; comes once, and nothing after it.
    func channelClosed(_ reason: CloseReason)
}

extension ChannelDriver {
    package func work() {}
    package func inputEnded() -> Bool { false }
}

/// How far a driver got with the bytes it was lent.
package struct ReceiveProgress {
    /// Bytes that need not be shown again.
    package var consumed: Int
    /// Bytes, counted from the first not consumed, without which showing them again is useless.
    package var bytesNeeded: Int

    package init(consumed: Int, bytesNeeded: Int = 1) {
        self.consumed = consumed
        self.bytesNeeded = bytesNeeded
    }
}

/// Why a connection ended.
package enum CloseReason: Error, Equatable, Sendable {
    /// The other side closed it.
    case closedByPeer
    /// The network or the other side's kernel broke it; libuv's text.
    case broken(String)
    /// The other side broke the protocol; the rule that it broke.
    case violation(String)
    /// The other side broke the rules of HTTP/2, or asked for too much by them.
    case http2(String)
    /// Nothing happened for longer than the idle limit.
    case idle
    /// No complete HELLO or frame within the time for it.
    case handshakeTimeout
    /// The other side took too little of what was sent.
    case tooSlowToRead
    /// More output gathered than one connection may hold.
    case outputOverflow
    /// Finished, on our side.
    case finished
    /// Incomplete messages on all connections exceed their limit, and this connection brought the last part.
    case tooManyIncompleteMessages
    /// Connections beyond the limit.
    case tooManyConnections
    /// Opened with a protocol that is not served.
    case protocolNotServed(String)
    /// An HTTP request that could not be read; what its sender was sent.
    case malformedRequest(String)
    /// The handshake of TLS failed, or what came later was no TLS.
    case tls(TLSError)
    /// The loop or the server was stopped.
    case stopped
}

/// Limits of a channel's output.
package struct ChannelLimits: Sendable {
    /// Output beyond this makes the channel congested.
    package var highWaterBytes: Int
    /// Output beyond this ends the connection.
    package var outputBytesMax: Int
    /// A congested write must make progress within this time, or the connection ends.
    package var stallMilliseconds: UInt64

    package init(highWaterBytes: Int = 256 << 10, outputBytesMax: Int = 64 << 20, stallMilliseconds: UInt64 = 30_000) {
        self.highWaterBytes = highWaterBytes
        self.outputBytesMax = outputBytesMax
        self.stallMilliseconds = stallMilliseconds
    }
}

@safe package final class Channel: TCPHandle, TimerTarget, LoopWork, @unchecked Sendable {
    // Sendable: as TCPHandle says.

    /// Output that is written before more is made, so that a buffer stays in the cache.
    package static let flushBytes = 64 << 10
    /// What must leave in `stallMilliseconds` from a channel that is stuck.
    private static let progressBytesMin = 4 << 10
    /// How long a connection that we ended may take to read our last words.
    private static let lingerMilliseconds: UInt64 = 2_000

    let limits: ChannelLimits
    /// Whether the output is sent at the end of the iteration, not of the turn: for a channel that the turns of many
    /// others write to.
    package var gathersOutput = false
    let hot = Confined(Hot())
    // Owner: this object; used by one write at a time, and freed in `deinit`, when libuv has let go of it.
    private let writeRequest: UnsafeMutablePointer<uv_write_t>
    private var stallTimer: EventLoop.Timer?
    /// Bytes in flight when the stall timer was set.
    private var stalledAt = 0

    /// What every read and every message touches.
    struct Hot: ~Copyable {
        var driver: (any ChannelDriver)?
        /// Bytes that the driver could not use yet, without those in `large`.
        var carry: [UInt8] = []
        var large: LargeFrame?
        var isReading = false
        /// The driver wants to see nothing more for now.
        var isInputPaused = false
        /// The input has had its slice of this iteration; the rest comes with the next share.
        var isInputDeferred = false
        /// The iteration in which the input has a slice, by its start, and when the slice ends, both in nanoseconds.
        var slicedIn: UInt64 = 0
        var sliceEndsAt: UInt64 = 0
        /// The other side has closed its sending side, and the driver has not seen all bytes before that.
        var endsWhenShown = false
        /// The other side has closed its sending side, and the driver ends the channel later.
        var hasInputEnded = false
        /// All output is sent: input is discarded until the other side closes.
        var readsToEnd = false

        var output: ByteBuffer?
        /// Bytes in `output`, when it is not lent.
        var outputBytes = 0
        var isOutputLent = false
        var inFlight: ByteBuffer?
        var isWriting = false
        var isUnsettled = false
        /// Waits for a share of the loop.
        var needsWork = false
        var closesAfterFlush: CloseReason?

        var bytesReceived: UInt64 = 0
        var bytesSent: UInt64 = 0

        /// Encrypts and decrypts everything, if the channel is secure.
        var tls: TLSSession?
        /// The bytes that the driver did not consume are the first ciphertext.
        var beginsTLS = false
    }

    /// The protocol spoken; replaced when the first bytes have shown which.
    package var driver: (any ChannelDriver)? {
        get { hot.state.driver }
        set { hot.state.driver = newValue }
    }

    /// Total bytes, for statistics.
    package var bytesReceived: UInt64 { hot.state.bytesReceived }
    package var bytesSent: UInt64 { hot.state.bytesSent }

    init(loop: EventLoop, limits: ChannelLimits) {
        self.limits = limits
        unsafe writeRequest = .allocate(capacity: 1)
        super.init(loop: loop)
    }

    deinit { unsafe writeRequest.deallocate() }

    // MARK: Reading

    package func startReading() {
        guard !hot.state.isReading, !isClosing else { return }
        hot.state.isReading = true
        let error = unsafe uv_read_start(
            stream,
            { handle, _, buffer in
                let channel = unsafe Channel.of(handle!.pointee.data)
                channel.loop.beginTurn()
                unsafe buffer!.pointee = channel.readSpace()
            },
            { stream, count, _ in
                let channel = unsafe Channel.of(stream!.pointee.data)
                channel.readEnded(count)
                channel.loop.endTurn()
            })
        if error < 0 { close(.broken(describeError(error))) }
    }

    private func stopReading() {
        guard hot.state.isReading else { return }
        hot.state.isReading = false
        unsafe uv_read_stop(stream)
    }

    private static func of(_ data: UnsafeMutableRawPointer?) -> Channel {
        unsafe Unmanaged<Channel>.fromOpaque(data!).takeUnretainedValue()
    }

    /// Where the next read goes: after the carried bytes in the loop's buffer, or into the large frame.
    private func readSpace() -> uv_buf_t {
        let room: UnsafeMutableRawBufferPointer
        if hot.state.tls == nil, let large = hot.state.large {
            unsafe room = large.room()
        } else if hot.state.carry.isEmpty || hot.state.tls != nil {
            unsafe room = loop.readBuffer
        } else {
            unsafe hot.state.carry.withUnsafeBytes { unsafe loop.readBuffer.copyMemory(from: $0) }
            unsafe room = UnsafeMutableRawBufferPointer(rebasing: loop.readBuffer[hot.state.carry.count...])
        }
        return unsafe uv_buf_init(room.baseAddress?.assumingMemoryBound(to: CChar.self), UInt32(room.count))
    }

    private func readEnded(_ count: Int) {
        guard count != 0, !isClosing else { return }
        if count == Int(UV_EOF.rawValue) { return endInput() }
        guard count > 0 else { return close(hot.state.closesAfterFlush ?? .broken(describeError(Int32(count)))) }
        hot.state.bytesReceived &+= UInt64(count)
        if hot.state.readsToEnd { return }
        if hot.state.tls != nil {
            return receiveSecured(unsafe RawSpan(_unsafeStart: loop.readBuffer.baseAddress!, byteCount: count))
        }
        if let large = hot.state.large {
            large.filled(count)
            guard large.isWhole else { return }
            hot.state.large = nil
            return large.withBytes(process)
        }
        let total = hot.state.carry.count + count
        // The loop's buffer is ours until this turn ends: nothing else reads on this thread meanwhile.
        process(unsafe RawSpan(_unsafeStart: loop.readBuffer.baseAddress!, byteCount: total))
    }

    /// The other side sends no more.
    func endInput() {
        stopReading()
        if hot.state.readsToEnd { return close(hot.state.closesAfterFlush ?? .closedByPeer) }
        // The channel ends when everything is sent.
        if hot.state.hasInputEnded || hot.state.closesAfterFlush != nil { return }
        if isInputHeld {
            hot.state.endsWhenShown = true
        } else if let driver, driver.inputEnded() {
            hot.state.hasInputEnded = true
        } else {
            close(.closedByPeer)
        }
    }

    /// Shows the bytes to the driver until it can use no more, and keeps the rest.
    func process(_ bytes: RawSpan) {
        beginSlice()
        var consumed = 0
        var needed = 1
        while !isClosing, hot.state.closesAfterFlush == nil, consumed < bytes.byteCount, let driver {
            let progress = driver.received(bytes.extracting(consumed..<bytes.byteCount))
            consumed += progress.consumed
            needed = progress.bytesNeeded
            if outputIsDue { flush() }
            if isCongested {
                needed = 1
                break
            }
            // Nothing consumed and no other driver to try: the rest must wait for more.
            if progress.consumed == 0, hot.state.driver === driver { break }
            if consumed < bytes.byteCount, isSliceOver {
                needed = 1
                deferInput()
                break
            }
        }
        guard !isClosing, hot.state.closesAfterFlush == nil else { return dropInput() }
        if hot.state.beginsTLS {
            hot.state.carry = []
            return receiveSecured(bytes.extracting(consumed..<bytes.byteCount))
        }
        keep(bytes.extracting(consumed..<bytes.byteCount), needed)
        if isInputHeld { stopReading() }
    }

    /// Nothing more is shown to the driver for now.
    var isInputHeld: Bool { isCongested || hot.state.isInputPaused || hot.state.isInputDeferred }

    // MARK: Slices of input

    /// The input of one iteration has one slice of time, however many reads bring it.
    func beginSlice() {
        guard hot.state.slicedIn != loop.iterationStartNanoseconds else { return }
        hot.state.slicedIn = loop.iterationStartNanoseconds
        hot.state.sliceEndsAt = loop.turnNanoseconds + IterationBudget.inputNanoseconds
    }

    /// Whether the driver should return from `received` with what it has not begun.
    package var isSliceOver: Bool { loop.nanoseconds >= hot.state.sliceEndsAt }

    /// Reads on with the next share of the loop.
    private func deferInput() {
        hot.state.isInputDeferred = true
        needsWork()
    }

    /// Reads no more in this iteration if the slice is over, whatever took the time.
    func endSliceIfOver() {
        guard !isClosing, !isInputHeld, isSliceOver else { return }
        deferInput()
        stopReading()
    }

    private func resumeDeferredInput() {
        guard hot.state.isInputDeferred else { return }
        hot.state.isInputDeferred = false
        hot.state.sliceEndsAt = loop.nanoseconds + IterationBudget.inputNanoseconds
        resumeReading()
    }

    private func keep(_ rest: RawSpan, _ needed: Int) {
        if rest.byteCount > 0, needed > loop.readBufferBytes / 2 {
            hot.state.carry = []
            hot.state.large = LargeFrame(beginningWith: rest, needed: needed)
        } else if rest.byteCount > 0 || !hot.state.carry.isEmpty {
            hot.state.carry = [UInt8](copying: rest)
        }
    }

    private func dropInput() {
        hot.state.carry = []
        hot.state.large = nil
    }

    /// Reads no more when the driver returns from `received`, which must not be outside of it.
    package func pauseInput() { hot.state.isInputPaused = true }

    /// Continues where the driver paused; not to be called inside `received`.
    package func resumeInput() {
        guard hot.state.isInputPaused else { return }
        hot.state.isInputPaused = false
        resumeReading()
    }

    /// Continues where congestion or the driver stopped.
    private func resumeReading() {
        guard !hot.state.isReading, !isInputHeld, !hot.state.readsToEnd else { return }
        if !hot.state.carry.isEmpty { processCarry() }
        guard !isInputHeld, !isClosing, !hot.state.hasInputEnded, hot.state.closesAfterFlush == nil else { return }
        if hot.state.endsWhenShown { endInput() } else { startReading() }
    }

    /// Shows the carried bytes to the driver.
    func processCarry() {
        let kept = hot.state.carry
        hot.state.carry = []
        process(unsafe kept.span.bytes)
    }

    // MARK: Writing

    /// Bytes that wait to be sent.
    package var pendingBytes: Int { hot.state.outputBytes + inFlightBytes }

    private var inFlightBytes: Int { hot.state.isWriting ? unsafe Int(stream.pointee.write_queue_size) : 0 }

    /// Whether so much waits that no more should be made.
    package var isCongested: Bool { hot.state.isWriting && pendingBytes > limits.highWaterBytes }

    /// Whether the output is worth a write before the turn ends.
    package var outputIsDue: Bool { !hot.state.isWriting && hot.state.outputBytes >= Self.flushBytes }

    /// Takes the output to append to it; must be followed by `putOutput`.
    package func takeOutput() -> ByteBuffer {
        precondition(!hot.state.isOutputLent, "one message is written at a time")
        hot.state.isOutputLent = true
        switch hot.state.output.take() {
        case .some(let writer): return writer
        case .none: return loop.takeWriter()
        }
    }

    /// Puts the output back with what was appended, to be sent when the turn ends.
    package func putOutput(_ writer: consuming ByteBuffer) {
        returnOutput(writer)
        needsSettling()
    }

    /// Puts the output back; for those who flush it themselves, or are in `produce`, after which it is flushed.
    package func returnOutput(_ writer: consuming ByteBuffer) {
        hot.state.isOutputLent = false
        hot.state.outputBytes = writer.count
        hot.state.output = consume writer
    }

    /// Appends to the output, to be sent when the turn ends.
    package func write(_ body: (inout ByteBuffer) -> Void) {
        guard !isClosing else { return }
        var writer = takeOutput()
        body(&writer)
        putOutput(writer)
    }

    /// Has `produce` and `flush` called when the turn ends, or the iteration with ``gathersOutput``.
    package func needsSettling() {
        guard !hot.state.isUnsettled else { return }
        hot.state.isUnsettled = true
        loop.needsSettling(self)
    }

    /// Has `work` called with the loop's next share for this channel.
    package func needsWork() {
        guard !hot.state.needsWork else { return }
        hot.state.needsWork = true
        loop.needsWork(self)
    }

    package func work() {
        hot.state.needsWork = false
        guard !isClosing else { return }
        resumeDeferredInput()
        driver?.work()
    }

    func settle() {
        hot.state.isUnsettled = false
        guard !isClosing else { return }
        driver?.produce()
        flush()
    }

    /// Writes what there is, as far as the socket takes it; the rest is written when the socket is ready.
    package func flush() {
        guard !isClosing else { return }
        if pendingBytes > limits.outputBytesMax { return close(.outputOverflow) }
        guard !hot.state.isWriting, var writer = takeBytesToWrite() else { return closeIfFlushed() }
        let count = writer.count
        let sent = tryWrite(writer.bytes)
        guard sent >= 0 else { return close(.broken(describeError(Int32(sent)))) }
        hot.state.bytesSent &+= UInt64(sent)
        if sent == count {
            writer.reset()
            loop.recycle(writer)
            closeIfFlushed()
        } else {
            writeRest(writer, from: sent)
        }
    }

    /// The output, encrypted if the channel is secure; nil if there is nothing to write, or the channel closed.
    @inline(__always)
    private func takeBytesToWrite() -> ByteBuffer? {
        if let session = hot.state.tls {
            do throws(TLSError) {
                return try sealOutput(session)
            } catch {
                close(.tls(error))
                return nil
            }
        }
        guard hot.state.outputBytes > 0 else { return nil }
        hot.state.outputBytes = 0
        return hot.state.output.take()
    }

    /// Bytes that the socket took at once, or libuv's error.
    private func tryWrite(_ bytes: RawSpan) -> Int {
        let result = unsafe bytes.withUnsafeBytes { bytes in
            // The buffer is only read, though libuv's type does not say so.
            let start = unsafe UnsafeMutableRawPointer(mutating: bytes.baseAddress!).assumingMemoryBound(to: CChar.self)
            var buffer = unsafe uv_buf_init(start, UInt32(bytes.count))
            return unsafe uv_try_write(stream, &buffer, 1)
        }
        return result == UV_EAGAIN.rawValue ? 0 : Int(result)
    }

    private func writeRest(_ writer: consuming ByteBuffer, from sent: Int) {
        let error = unsafe writer.bytes.extracting(sent..<writer.count).withUnsafeBytes { bytes in
            let start = unsafe UnsafeMutableRawPointer(mutating: bytes.baseAddress!).assumingMemoryBound(to: CChar.self)
            var buffer = unsafe uv_buf_init(start, UInt32(bytes.count))
            unsafe writeRequest.pointee.data = unsafe UnsafeMutableRawPointer(Unmanaged.passUnretained(self).toOpaque())
            return unsafe uv_write(writeRequest, stream, &buffer, 1) { request, status in
                let channel = unsafe Channel.of(request!.pointee.data)
                channel.loop.beginTurn()
                channel.writeEnded(status)
                channel.loop.endTurn()
            }
        }
        // The bytes stay where they are while the writer moves: its memory is on the heap, and `inFlight` is not
        // appended to.
        hot.state.inFlight = consume writer
        hot.state.isWriting = true
        if error < 0 { return close(.broken(describeError(error))) }
        stalledAt = inFlightBytes
        armStallTimer()
    }

    private func writeEnded(_ status: Int32) {
        hot.state.isWriting = false
        if let written = hot.state.inFlight.take() {
            hot.state.bytesSent &+= UInt64(status == 0 ? stalledAt : 0)
            loop.recycle(written)
        }
        if let timer = stallTimer.take() { loop.cancel(timer) }
        guard !isClosing else { return }
        guard status == 0 else { return close(.broken(describeError(status))) }
        flush()
        guard !isClosing, !isCongested else { return }
        resumeReading()
        needsSettling()
    }

    private func armStallTimer() {
        guard limits.stallMilliseconds > 0 else { return }
        stallTimer = loop.schedule(afterMilliseconds: limits.stallMilliseconds, self)
    }

    package func timerFired(_ token: UInt64) {
        guard !isClosing else { return }
        if hot.state.readsToEnd { return close(hot.state.closesAfterFlush ?? .finished) }
        stallTimer = nil
        let left = inFlightBytes
        guard left > 0 else { return }
        guard stalledAt - left >= Self.progressBytesMin else { return close(.tooSlowToRead) }
        hot.state.bytesSent &+= UInt64(stalledAt - left)
        stalledAt = left
        armStallTimer()
    }

    // MARK: Ending

    /// Ends the connection now; what was not sent is lost.
    package func close(_ reason: CloseReason) {
        guard !isClosing else { return }
        stopReading()
        dropInput()
        if let timer = stallTimer.take() { loop.cancel(timer) }
        closeHandle()
        if let driver = hot.state.driver.take() { driver.channelClosed(reason) }
    }

    /// Ends the connection when everything written so far has been sent and the other side had time to read it.
    package func closeAfterFlush(_ reason: CloseReason) {
        guard !isClosing, hot.state.closesAfterFlush == nil else { return }
        hot.state.closesAfterFlush = reason
        dropInput()
        needsSettling()
    }

    /// All output is sent: shuts it down and reads until the other side closes, since closing with unread input would
    /// make its kernel throw our words away.
    private func closeIfFlushed() {
        guard hot.state.closesAfterFlush != nil, !hot.state.readsToEnd, !hot.state.isWriting, !isClosing else { return }
        hot.state.readsToEnd = true
        var descriptor: uv_os_fd_t = -1
        if unsafe uv_fileno(handle, &descriptor) == 0 { _ = shutdown(descriptor, Int32(SHUT_WR)) }
        if let timer = stallTimer.take() { loop.cancel(timer) }
        stallTimer = loop.schedule(afterMilliseconds: Self.lingerMilliseconds, self)
        startReading()
    }

    override func cutOff() { close(.stopped) }

    override func handleClosed() {
        hot.state.output = nil
        hot.state.inFlight = nil
    }
}
