// From HTTP/2 frames to calls and messages: all of this runs inside nghttp2's callbacks.

import Basics
import CNGHTTP2
import Calls

/// A whole message at the end of the bytes received so far, lent until its DATA frame is known to end there.
@safe struct DeferredMessage {
    // Owner: the caller of `receive`, until that returns. In bounds: a range that the message reader found.
    let stream: StreamPlace
    let start: UnsafeRawPointer
    let count: Int
    let isCompressed: Bool
}

extension HTTP2Session {
    // MARK: Fields

    /// Whether a request had a header of a proxy.
    var hasProxiedRequests: Bool { hot.state.fields.isProxied }

    func fieldsBegin() -> Int32 {
        hot.state.fields.reset()
        hot.state.fieldsSince = hot.state.now
        return 0
    }

    func field(_ name: RawSpan, _ value: RawSpan) -> Int32 {
        hot.state.fields.take(
            name, value, bytesMax: limits.metadataBytesMax, keepsAuthorization: limits.keepsAuthorization,
            keepsForwarded: limits.trustedProxies != nil)
        let byteCount = hot.state.fields.byteCount
        guard byteCount > limits.metadataBytesMax else { return 0 }
        if byteCount > limits.metadataBytesMax * HTTP2Limits.metadataExcess {
            hot.state.failure = "a header list without an end"
            return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
        }
        let isFirstBeyond = byteCount - RequestFields.byteCount(name, value) <= limits.metadataBytesMax
        return isFirstBeyond && !spendReset() ? NGHTTP2_ERR_CALLBACK_FAILURE.rawValue : 0
    }

    /// A request's fields are complete: the stream begins.
    private func requestBegins(_ identifier: UInt32, isLast: Bool) {
        let stream = pool.take()
        stream.state.identifier = identifier
        stream.state.clientEnded = isLast
        unsafe nghttp2_session_set_stream_user_data(session, Int32(bitPattern: identifier), stream.pointer)
        hot.state.known = stream
        hot.state.openCalls += 1
        if let proxies = limits.trustedProxies {
            stream.state.forwarding = hot.state.fields.forwarded.forwarding(trusting: proxies)
        }
        switch hot.state.fields.validity(bytesMax: limits.metadataBytesMax, httpFieldsMax: limits.httpFieldsMax) {
        case .call(let head, let encoding):
            stream.state.head = head
            stream.state.encoding = encoding
            if let agent = hot.state.fields.takeAgent() { limits.onAgent(agent) }
            if limits.keepsAuthorization { stream.state.authorization = hot.state.fields.authorization }
            if isLast { return endedWithoutMessage(stream) }
            if head.rpc.shape == .bidirectional {
                // Its client may wait for our head before it says anything.
                submitHead(stream)
                if head.deadlineMilliseconds != nil { unsafe delegate.waits(identifier, head) }
            } else {
                stream.state.arrivingSince = hot.state.now
                if head.deadlineMilliseconds != nil { hot.state.headsAlone.append(identifier) }
            }
        case .refuse(let refusal): unsafe delegate.refused(identifier, refusal)
        case .status(let status):
            _ = endCall(identifier)
            submitHTTPStatus(stream, status)
        case .http(let refusal): exchangeBegins(stream, hot.state.fields.head, refusal)
        }
    }

    // MARK: Frames

    /// A frame has been received whole, and its fields or bytes were reported.
    func frameEnded(_ frame: UnsafePointer<nghttp2_frame>) -> Int32 {
        hot.state.lastFrameAt = hot.state.now
        // No frame comes between those of a header list.
        hot.state.fieldsSince = nil
        let header = unsafe frame.pointee.hd
        let identifier = UInt32(bitPattern: header.stream_id)
        let isLast = header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        switch UInt32(header.type) {
        case NGHTTP2_DATA.rawValue:
            let isEmpty = unsafe header.length == frame.pointee.data.padlen
            return dataEnded(identifier, isEmpty: isEmpty, isLast: isLast)
        case NGHTTP2_HEADERS.rawValue:
            if unsafe frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST {
                requestBegins(identifier, isLast: isLast)
            } else if let stream = find(identifier) {
                // Trailers, of which gRPC's clients send none. Nghttp2 checks that they end the stream, or nobody does.
                if isLast {
                    clientEnds(stream)
                } else {
                    unsafe nghttp2_submit_rst_stream(
                        session, UInt8(NGHTTP2_FLAG_NONE.rawValue), header.stream_id, NGHTTP2_PROTOCOL_ERROR.rawValue)
                }
            }
        case NGHTTP2_WINDOW_UPDATE.rawValue:
            if identifier == 0 {
                hot.state.hasConnectionWindowOpened = true
            } else {
                unsafe delegate.windowOpened(identifier)
            }
        case NGHTTP2_SETTINGS.rawValue:
            guard header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) == 0 else { break }
            hot.state.hasSettings = true
            hot.state.hasConnectionWindowOpened = true
            return idleFrame()
        case NGHTTP2_PING.rawValue:
            guard header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) == 0 else {
                unsafe delegate.pingAcknowledged()
                break
            }
            return idleFrame()
        case NGHTTP2_GOAWAY.rawValue: hot.state.clientLeaves = true
        case NGHTTP2_RST_STREAM.rawValue:
            hot.state.streamReset = identifier
            return spendReset() ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
        default: break
        }
        return 0
    }

    /// A frame breaks a rule. nghttp2 resets its stream, and does not report the end of its header list.
    func frameRefused(_ header: nghttp2_frame_hd) -> Int32 {
        let endsHeaders = header.flags & UInt8(NGHTTP2_FLAG_END_HEADERS.rawValue) != 0
        if UInt32(header.type) == NGHTTP2_HEADERS.rawValue, endsHeaders { hot.state.fieldsSince = nil }
        return idleFrame()
    }

    private func idleFrame() -> Int32 { spendIdleFrame() ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE.rawValue }

    /// HTTP/2 is done with a stream, one way or the other.
    func streamClosed(_ identifier: UInt32) -> Int32 {
        guard let stream = find(identifier) else { return 0 }
        if let held = hot.state.held, held.stream == stream { hot.state.held = nil }
        if !stream.state.isOver {
            // The client broke a rule, so that we reset the stream: it counts as if the client had reset it.
            if hot.state.streamReset != identifier { _ = spendReset() }
            unsafe delegate.cancelled(identifier)
        }
        _ = endCall(identifier)
        hot.state.unsentBytes -= stream.state.unsentBytes
        hot.state.known = nil
        pool.give(stream)
        return 0
    }

    /// The call is over; its stream stays until HTTP/2 has closed it.
    ///
    /// - Returns: whether the handler knows of the call; nil when it was over already.
    func endCall(_ identifier: UInt32) -> Bool? {
        guard let stream = find(identifier), !stream.state.isOver else { return nil }
        stream.state.isOver = true
        hot.state.openCalls -= 1
        _ = takeAssembly(stream)
        _ = takeInflating(stream)
        return stream.state.http.map { $0.reply.form != nil } ?? stream.state.hasBegun
    }

    // MARK: Data

    /// Part of a DATA frame has come, at least one byte.
    func data(_ identifier: UInt32, _ bytes: RawSpan) -> Int32 {
        hot.state.uncredited += bytes.byteCount
        guard let stream = find(identifier) else { return 0 }
        stream.state.uncredited += bytes.byteCount
        // To a call that is over, bytes may still be under way.
        guard !stream.state.isOver else { return 0 }
        if let exchange = stream.state.http {
            takeBody(stream, exchange, bytes)
            return 0
        }
        if hot.state.held != nil { deliverDeferred(isLast: false) }
        readMessages(stream, bytes)
        noteArrival(stream)
        return 0
    }

    private func readMessages(_ stream: StreamPlace, _ bytes: RawSpan) {
        var offset = 0
        while offset < bytes.byteCount, !stream.state.isOver {
            if stream.state.inflating != nil { return follow(stream, bytes.extracting(offset..<bytes.byteCount)) }
            if stream.state.isWhole {
                guard deliverWhole(stream, isLast: false), !stream.state.isOver else { break }
            }
            readMessage(stream, bytes, &offset)
        }
    }

    /// Notes when the message began of which the bytes so far end in the middle. The request of a method that takes one
    /// message has begun with its head.
    private func noteArrival(_ stream: StreamPlace) {
        guard stream.state.head.rpc.shape == .bidirectional else { return }
        if !stream.state.reader.isInsideMessage {
            stream.state.arrivingSince = nil
        } else if stream.state.arrivingSince == nil {
            stream.state.arrivingSince = hot.state.now
        }
    }

    private func readMessage(_ stream: StreamPlace, _ bytes: RawSpan, _ offset: inout Int) {
        let identifier = stream.state.identifier
        switch stream.state.reader.next(bytes, &offset, bytesMax: limits.messageBytesMax) {
        case .incomplete: break
        case .whole(let range):
            stream.state.messageEnded()
            unsafe bytes.withUnsafeBytes {
                hot.state.held = unsafe DeferredMessage(
                    stream: stream, start: $0.baseAddress! + range.lowerBound, count: range.count,
                    isCompressed: stream.state.reader.isCompressed)
            }
            // More in this frame, so this is not the last message.
            if offset < bytes.byteCount { deliverDeferred(isLast: false) }
        case .part(let range): _ = keep(stream, bytes.extracting(range))
        case .lastPart(let range):
            guard keep(stream, bytes.extracting(range)) else { return }
            stream.state.messageEnded()
            let isCompressed = stream.state.reader.isCompressed
            wholeArrived(stream)
            if isCompressed { inflateAssembly(stream) }
        case .reservedFlag(let flag): unsafe delegate.refused(identifier, .reservedFlag(flag))
        case .tooLarge:
            unsafe delegate.refused(identifier, .messageTooLarge(max: UInt32(clamping: limits.messageBytesMax)))
        }
    }

    private func wholeArrived(_ stream: StreamPlace) { stream.state.isWhole = true }

    /// Adds bytes to the stream's assembly, if there may be so many; else the call is refused.
    func keep(_ stream: StreamPlace, _ bytes: RawSpan) -> Bool {
        guard mayHold(stream, bytes.byteCount) else { return false }
        hot.state.assemblyBytes += bytes.byteCount
        stream.state.assembly.append(bytes, at: hot.state.now)
        return true
    }

    /// Whether so many bytes more may be held; else the call is refused.
    private func mayHold(_ stream: StreamPlace, _ byteCount: Int) -> Bool {
        if hot.state.assemblyBytes + byteCount <= limits.assemblyBytesMax { return true }
        unsafe delegate.refused(stream.state.identifier, .incompleteMessagesTooLarge(max: limits.assemblyBytesMax))
        return false
    }

    func takeAssembly(_ stream: StreamPlace) -> [UInt8] {
        hot.state.assemblyBytes -= stream.state.assembly.bytes.count
        stream.state.isWhole = false
        return stream.state.assembly.take()
    }

    /// A DATA frame has ended.
    private func dataEnded(_ identifier: UInt32, isEmpty: Bool, isLast: Bool) -> Int32 {
        if isEmpty, !isLast, !spendIdleFrame() { return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue }
        guard let stream = find(identifier) else { return 0 }
        if isLast { clientEnds(stream) } else { messagesEnded(stream) }
        credit(stream)
        return 0
    }

    /// The bytes that were read last are all that have come.
    private func messagesEnded(_ stream: StreamPlace) {
        if hot.state.held != nil {
            deliverDeferred(isLast: false)
        } else if stream.state.isWhole, stream.state.head.rpc.shape == .bidirectional {
            _ = deliverWhole(stream, isLast: false)
        }
    }

    private func clientEnds(_ stream: StreamPlace) {
        stream.state.clientEnded = true
        stream.state.arrivingSince = nil
        guard !stream.state.isOver else { return }
        if stream.state.http != nil { return serve(stream) }
        if stream.state.inflating != nil { return }
        if hot.state.held != nil { return deliverDeferred(isLast: true) }
        if stream.state.isWhole {
            _ = deliverWhole(stream, isLast: true)
            return
        }
        let identifier = stream.state.identifier
        if stream.state.reader.isInsideMessage {
            unsafe delegate.refused(identifier, .endedInsideGRPCMessage)
        } else if stream.state.hasBegun {
            unsafe delegate.halfClosed(identifier)
        } else {
            endedWithoutMessage(stream)
        }
    }

    /// A stream of messages may be empty; other methods take one.
    private func endedWithoutMessage(_ stream: StreamPlace) {
        let rpc = stream.state.head.rpc
        let identifier = stream.state.identifier
        if rpc.shape == .bidirectional {
            unsafe delegate.endedEmpty(identifier)
        } else {
            unsafe delegate.refused(identifier, .messageCount(rpcs.name(of: rpc)))
        }
    }

    /// Permits the client more on a stream, once half a window has been taken and nobody holds it.
    func credit(_ stream: StreamPlace) {
        let due = stream.state.uncredited
        guard due * 2 >= Int(limits.streamWindowBytes), !stream.state.clientEnded, stream.state.inflating == nil,
            !stream.state.isPaused || stream.state.reader.isInsideMessage
        else { return }
        stream.state.uncredited = 0
        unsafe nghttp2_session_consume_stream(session, Int32(bitPattern: stream.state.identifier), due)
    }

    /// Has the client stop sending on a stream when its window is used up, or continue.
    func setPaused(_ identifier: UInt32, _ isPaused: Bool) {
        guard let stream = find(identifier) else { return }
        stream.state.isPaused = isPaused
        credit(stream)
    }

    // MARK: Messages

    private func deliverDeferred(isLast: Bool) {
        guard let held = hot.state.held else { return }
        hot.state.held = nil
        let payload = unsafe RawSpan(_unsafeStart: held.start, byteCount: held.count)
        guard held.isCompressed else { return deliver(held.stream, payload, isLast: isLast) }
        guard let inflated = inflate(held.stream, payload) else { return }
        unsafe deliver(held.stream, inflated.span.bytes, isLast: isLast)
    }

    /// The bytes that hold the message are about to go.
    func copyDeferredMessage() {
        guard let held = hot.state.held else { return }
        hot.state.held = nil
        guard unsafe keep(held.stream, RawSpan(_unsafeStart: held.start, byteCount: held.count)) else { return }
        wholeArrived(held.stream)
        if held.isCompressed { inflateAssembly(held.stream) }
    }

    /// Hands on a message, lent; keeps it when it cannot be handed on yet.
    private func deliver(_ stream: StreamPlace, _ payload: RawSpan, isLast: Bool) {
        guard mayDeliver(stream, isLast: isLast) else {
            if keep(stream, payload) { wholeArrived(stream) }
            return
        }
        forwardMessage(stream, payload, isLast: isLast)
    }

    /// Hands on the message that was kept; false when it still has to be kept.
    private func deliverWhole(_ stream: StreamPlace, isLast: Bool) -> Bool {
        guard mayDeliver(stream, isLast: isLast) else { return false }
        let message = takeAssembly(stream)
        unsafe forwardMessage(stream, message.span.bytes, isLast: isLast)
        return true
    }

    /// Whether a message may be handed on now. A method that takes one message is begun when the client has ended, so
    /// that a second one is noticed, and when answers before it have been taken.
    private func mayDeliver(_ stream: StreamPlace, isLast: Bool) -> Bool {
        guard stream.state.head.rpc.shape != .bidirectional else { return true }
        let identifier = stream.state.identifier
        guard isLast else {
            // The client sends more after a whole message: with its end, or with one message too many.
            if stream.state.isWhole {
                unsafe delegate.refused(identifier, .messageCount(rpcs.name(of: stream.state.head.rpc)))
            }
            return false
        }
        guard isCongested else { return true }
        hot.state.waiting.append(identifier)
        unsafe delegate.waits(identifier, stream.state.head)
        return false
    }

    private func forwardMessage(_ stream: StreamPlace, _ payload: RawSpan, isLast: Bool) {
        let identifier = stream.state.identifier
        guard !stream.state.hasBegun else { return unsafe delegate.message(identifier, payload, isLast: isLast) }
        stream.state.hasBegun = true
        // Nearly always the message comes with the head.
        if hot.state.headsAlone.last == identifier { hot.state.headsAlone.removeLast() }
        stream.state.head.isComplete = isLast
        unsafe delegate.begin(identifier, stream.state.head, payload)
    }

    /// Begins calls that waited, as long as their answers would not wait themselves.
    ///
    /// - Parameter limit: how many calls at most.
    func beginWaiting(atMost limit: Int = .max) {
        guard hasWaiting else { return }
        var begun = 0
        while begun < min(limit, hot.state.waiting.count), !isCongested {
            let identifier = hot.state.waiting[begun]
            begun += 1
            guard let stream = find(identifier), !stream.state.isOver else { continue }
            if stream.state.http != nil {
                forwardRequest(stream)
                continue
            }
            let message = takeAssembly(stream)
            unsafe forwardMessage(stream, message.span.bytes, isLast: true)
        }
        hot.state.waiting.removeFirst(begun)
    }

    // MARK: Compression

    /// Bytes of a message that are inflated at once: some tenths of a millisecond.
    private static let pieceBytes = 128 << 10

    /// The message inflated; nil if the call was refused, or the message is long or comes after many others, and is
    /// inflated in pieces, between which others have their turn.
    private func inflate(_ stream: StreamPlace, _ payload: RawSpan) -> [UInt8]? {
        let identifier = stream.state.identifier
        guard stream.state.encoding != .identity else {
            unsafe delegate.refused(identifier, .undeclaredCompression)
            return nil
        }
        let inflation = Inflation(bytesMax: limits.messageBytesMax)
        do throws(InflateFailure) {
            // One at a time, so that a connection has one state of zlib; a piece for each turn, however many messages
            // it comes in.
            if !isInflating, hot.state.inflatedBytes < Self.pieceBytes {
                defer { hot.state.inflatedBytes += inflation.output.count }
                if try inflation.step(payload, pieceBytes: Self.pieceBytes) { return inflation.output }
            }
        } catch {
            refuse(stream, error)
            return nil
        }
        let message = InflatingMessage(inflation, payload)
        guard mayHold(stream, message.byteCount) else { return nil }
        hot.state.assemblyBytes += message.byteCount
        stream.state.inflating = message
        hot.state.inflating.append(identifier)
        if !stream.state.hasBegun { unsafe delegate.waits(identifier, stream.state.head) }
        return nil
    }

    private func refuse(_ stream: StreamPlace, _ failure: InflateFailure) {
        let refusal: Refusal =
            switch failure {
            case .tooLarge: .messageTooLarge(max: UInt32(clamping: limits.messageBytesMax))
            case .malformed: .malformedCompression
            }
        unsafe delegate.refused(stream.state.identifier, refusal)
    }

    private func inflateAssembly(_ stream: StreamPlace) {
        let compressed = takeAssembly(stream)
        guard let inflated = unsafe inflate(stream, compressed.span.bytes), unsafe keep(stream, inflated.span.bytes)
        else { return }
        stream.state.isWhole = true
    }

    /// Keeps what comes after a message that is being inflated.
    private func follow(_ stream: StreamPlace, _ bytes: RawSpan) {
        guard mayHold(stream, bytes.byteCount) else { return }
        hot.state.assemblyBytes += bytes.byteCount
        stream.state.inflating?.follow(bytes)
    }

    /// Inflates a piece of the message that waits first, and hands it on when it is complete, with what follows it.
    func inflatePiece() {
        guard let identifier = hot.state.inflating.first else { return }
        guard let stream = find(identifier), let message = stream.state.inflating else {
            hot.state.inflating.removeFirst()
            return
        }
        hot.state.inflatedBytes = Self.pieceBytes
        let before = message.byteCount
        do throws(InflateFailure) {
            let isComplete = try message.step(pieceBytes: Self.pieceBytes)
            hot.state.assemblyBytes += message.byteCount - before
            if isComplete { inflated(stream) } else { _ = mayHold(stream, 0) }
        } catch {
            hot.state.assemblyBytes += message.byteCount - before
            refuse(stream, error)
        }
    }

    private func inflated(_ stream: StreamPlace) {
        guard let message = takeInflating(stream) else { return }
        let (output, following) = (message.output, message.following)
        guard keep(stream, output.byteSpan) else { return }
        wholeArrived(stream)
        readMessages(stream, following.byteSpan)
        if stream.state.clientEnded {
            clientEnds(stream)
        } else {
            messagesEnded(stream)
            noteArrival(stream)
            credit(stream)
        }
        // The last message may lie in these bytes.
        withExtendedLifetime(following) {}
    }

    private func takeInflating(_ stream: StreamPlace) -> InflatingMessage? {
        guard let message = stream.state.inflating.take() else { return nil }
        hot.state.assemblyBytes -= message.byteCount
        hot.state.inflating.removeAll { $0 == stream.state.identifier }
        return message
    }
}
