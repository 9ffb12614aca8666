// One connection of the native protocol on the server: performs what the session decides.
//
// Bytes ──▶ FrameDecoder ──▶ ServerSession ──action──▶ perform ──▶ handler.begin ──▶ call.respond ──▶ channel's output
//
// A call whose reply is made inside `begin` touches no table, timer or heap. Other calls are parked in the session.

package import Basics
package import Calls
package import Connections
package import EventLoops

package final class ServerConnection: CallConnection, @unchecked Sendable {
    // Sendable: confined to the loop, as CallCarrier says.

    package let core: ConnectionCore
    private let hot: Confined<Hot>
    private let frameBytesMax: Int
    /// Frames that are taken between two looks at the clock.
    private static let framesPerCheck = 16

    package init(_ core: ConnectionCore, rpcs: RPCTable) {
        self.core = core
        let limits = core.configuration.session
        frameBytesMax = Int(limits.settings.frameBytesMax)
        hot = Confined(Hot(session: ServerSession(limits: limits, rpcs: rpcs), lastFrameAt: core.openedAt))
        channel.write { limits.settings.appendHello(to: &$0) }
        enforceTimeouts()
    }

    /// What every call touches.
    private struct Hot {
        var session: ServerSession
        /// Where the message being written has its header.
        var messageStart = 0
        var lastFrameAt: UInt64
        /// When the frame that is still incomplete began.
        var partialSince: UInt64?
        var assemblyBytesSeen = 0
    }

    private var session: ServerSession {
        _read { yield hot.state.session }
        _modify { yield &hot.state.session }
    }

    package var assemblyBytes: Int { session.assemblyBytes }
    package var openCalls: Int { session.openCalls }
    package var openStreams: [UInt32] { session.streams.streams }
    package var lastReceivedAt: UInt64 { hot.state.lastFrameAt }

    // Every call uses these: here they need no way over the witness table of CallConnection.
    var channel: Channel { core.channel }
    var loop: EventLoop { core.loop }
    var handler: any ServiceHandler { core.handler }
    var isOver: Bool { core.state.isOver }
    package var loopThread: any LoopThread { core.loop }
    package var isProxied: Bool { core.proxyHeader != nil }

    // MARK: Incoming frames

    package func received(_ bytes: RawSpan) -> ReceiveProgress {
        hot.state.lastFrameAt = loop.nowMilliseconds
        session.now = hot.state.lastFrameAt
        var offset = 0
        var frames = 0
        while !isOver {
            switch FrameDecoder.scan(bytes, at: offset, payloadBytesMax: frameBytesMax) {
            case .frame(let header):
                let start = offset + FrameHeader.byteCount
                offset = start + Int(header.length)
                take(header, bytes.extracting(start..<offset))
                frames &+= 1
                // There is enough to write, or too much to continue: the channel decides, and calls again for the rest.
                if channel.outputIsDue || channel.isCongested
                    || frames % Self.framesPerCheck == 0 && channel.isSliceOver
                {
                    hot.state.partialSince = nil
                    return ReceiveProgress(consumed: offset)
                }
            case .incomplete(let needed):
                notePartialFrame(isPresent: offset < bytes.byteCount, isNew: offset > 0)
                return ReceiveProgress(consumed: offset, bytesNeeded: needed)
            case .tooLarge(let header):
                fail(.frameTooLarge(length: header.length, max: frameBytesMax))
            }
        }
        return ReceiveProgress(consumed: bytes.byteCount)
    }

    private func notePartialFrame(isPresent: Bool, isNew: Bool) {
        guard isPresent else { return hot.state.partialSince = nil }
        if isNew || hot.state.partialSince == nil { hot.state.partialSince = hot.state.lastFrameAt }
    }

    @inline(__always)
    private func take(_ header: FrameHeader, _ payload: RawSpan) {
        switch session.receive(header, payload) {
        case .nothing: if header.flags.contains(.more) { armDeadline(ofPartialMessage: header.stream) }
        case .opened, .pongReceived: break
        case .begin(let stream, let head, let place): begin(stream, head, place, payload)
        case .message(let stream, let place, let isLast): message(stream, place, isLast, payload)
        case .halfClosed(let stream): halfClose(stream)
        case .cancelled(let stream): cancel(stream, .client)
        case .windowOpened(let stream): windowOpened(stream)
        case .pong(let opaque): channel.write { $0.appendPing(.pong, opaque) }
        case .refuse(let stream, let refusal): refuse(stream, refusal)
        case .clientLeaves: channel.needsSettling()
        case .fail(let violation): fail(violation)
        }
        noteAssembly()
    }

    @inline(__always)
    private func noteAssembly() {
        guard session.assemblyBytes != hot.state.assemblyBytesSeen else { return }
        hot.state.assemblyBytesSeen = session.assemblyBytes
        countAssembly()
    }

    private func begin(_ stream: UInt32, _ head: RequestHead, _ place: MessageBytes, _ payload: RawSpan) {
        let call = core.makeCall(stream, head, on: self)
        switch place {
        case .inFrame(let offset): handler.begin(call, payload: payload.extracting(droppingFirst: offset))
        case .assembled:
            let message = session.assembled
            handler.begin(call, payload: message.byteSpan)
        }
        if session.settleCurrent() { armDeadline(stream, head.deadlineMilliseconds) }
        if head.isComplete, head.rpc.shape == .bidirectional { halfClose(stream) }
    }

    /// The deadline of a call counts from its REQUEST, also if its message comes in parts.
    private func armDeadline(ofPartialMessage stream: UInt32) {
        guard let position = session.streams.position(of: stream) else { return }
        armDeadline(stream, session.streams[position: position].head.deadlineMilliseconds)
    }

    private func message(_ stream: UInt32, _ place: MessageBytes, _ isLast: Bool, _ payload: RawSpan) {
        switch place {
        case .inFrame: deliver(payload, to: stream)
        case .assembled:
            let message = session.assembled
            deliver(message.byteSpan, to: stream)
        }
        if isLast { halfClose(stream) } else { permitMore(stream) }
    }

    private func permitMore(_ stream: UInt32) {
        guard let bytes = session.creditDue(stream) else { return }
        channel.write { $0.appendWindow(bytes, stream: stream) }
    }

    // MARK: Lifetime of a call

    /// Gives the call a place in the table and starts its deadline.
    package func park(_ stream: UInt32) -> Bool { position(of: stream) != nil }

    private func position(of stream: UInt32) -> Int? {
        let isNew = stream == session.current
        guard let position = session.park(stream) else { return nil }
        if isNew { armDeadline(stream, session.streams[position: position].head.deadlineMilliseconds) }
        return position
    }

    package func forget(_ stream: UInt32) -> Bool? { session.finish(stream) }

    package func sendStatus(_ stream: UInt32, _ code: StatusCode, _ text: String) {
        channel.write { $0.appendStatus(code, text, stream: stream) }
    }

    package func hasWindow(_ stream: UInt32) -> Bool {
        session.streams.position(of: stream).map { session.streams[position: $0].sendWindow.isOpen } ?? false
    }

    // MARK: CallCarrier

    /// Over the socket in the file system nobody shows a token: only the user of the server may use it.
    package var carriesCredentials: Bool { !isLocal }

    package func authorization(_ stream: UInt32) -> String? { session.authorization(of: stream) }

    package func isOpen(_ stream: UInt32) -> Bool { !isOver && session.isOpen(stream) }

    package func beginMessage(_ stream: UInt32) -> ByteBuffer? {
        guard isOpen(stream) else { return nil }
        var output = channel.takeOutput()
        hot.state.messageStart = output.count
        output.append(FrameHeader(length: 0, kind: .message))
        return output
    }

    package func endMessage(_ stream: UInt32, _ output: consuming ByteBuffer, isLast: Bool) {
        let length = output.count - hot.state.messageStart - FrameHeader.byteCount
        precondition(length >= 0, "a message's writer only appends")
        guard length <= Int(session.peer.messageBytesMax) else {
            abandonMessage(output)
            return finish(
                stream, .resourceExhausted,
                "the reply of \(length) bytes exceeds the client's limit of \(session.peer.messageBytesMax)")
        }
        output.finishMessage(
            at: hot.state.messageStart,
            FrameHeader(length: length, kind: .message, flags: isLast ? .endStream : [], stream: stream),
            frameBytesMax: Int(session.peer.frameBytesMax))
        channel.putOutput(output)
        if isLast {
            if !session.finishCurrent(stream) {
                _ = forget(stream)
                detach(stream)
            }
        } else if let position = position(of: stream) {
            session.streams[position: position].sendWindow.consume(length)
        }
    }

    package func abandonMessage(_ output: consuming ByteBuffer) {
        output.truncate(to: hot.state.messageStart)
        channel.putOutput(output)
    }

    package func setPaused(_ stream: UInt32, _ isPaused: Bool) {
        guard !isOver, let position = position(of: stream) else { return }
        session.streams[position: position].isPaused = isPaused
        if !isPaused { permitMore(stream) }
    }

    // MARK: Time limits and ending

    package func timeoutReason(now: UInt64, limit: UInt64) -> String? {
        if !session.isOpen, now - core.openedAt >= limit { return "no HELLO within \(limit) ms" }
        if let partialSince = hot.state.partialSince, now - partialSince >= limit {
            return "a frame did not arrive completely within \(limit) ms"
        }
        // Other calls of the connection are not concerned.
        for stream in session.lateStreams(now: now, limit: limit) { refuse(stream, .tooLate) }
        noteAssembly()
        return nil
    }

    package func drain() {
        guard !isOver, session.drainsAfter == nil else { return }
        let last = session.drain()
        channel.write { $0.appendGoAway(.ok, "the server is draining", lastStream: last) }
    }

    package func endIfDone() {
        guard !isOver, session.drainsAfter != nil || session.clientLeaves, session.openCalls == 0 else { return }
        close(.finished)
    }

    private func fail(_ violation: ProtocolViolation) {
        owner.statistics.protocolErrors &+= 1
        end(.violation(violation.description), violation.code, violation.description)
    }

    package func end(_ reason: CloseReason, _ code: StatusCode, _ text: String) {
        channel.write { $0.appendGoAway(code, text, lastStream: session.lastStream) }
        close(reason)
    }
}
