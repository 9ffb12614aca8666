// From answers to HTTP/2 frames. An answer is a head, messages, and trailers with the status; one that is an error from
// the start is a single HEADERS frame with all of it.

import Basics
import CNGHTTP2
import Calls

extension HTTP2Session {
    /// What a client must take of an answer between two looks at it.
    private static let progressBytesMin = 4 << 10

    // MARK: Messages

    /// Lends the staged output, prepared for a message. Must be followed by one of the next two.
    func openMessage() -> ByteBuffer {
        var staged = takeStaged()
        hot.state.messageStart = staged.count
        staged.reserve(MessageReader.prefixBytes)
        // The length is filled in when it is known.
        staged.append(byte: 0)
        staged.append(littleEndian: UInt32(0))
        return staged
    }

    /// What was staged in this turn, to append to.
    func takeStaged() -> ByteBuffer {
        switch hot.state.staged.take() {
        case .some(let writer): writer
        case .none: unsafe delegate.takeBuffer()
        }
    }

    /// Takes a message of an open call, which is complete.
    func endMessage(_ identifier: UInt32, _ staged: consuming ByteBuffer, isLast: Bool) {
        let start = hot.state.messageStart
        let end = staged.count
        staged.overwrite(
            at: start + 1, littleEndian: UInt32(truncatingIfNeeded: end - start - MessageReader.prefixBytes).byteSwapped
        )
        guard let stream = find(identifier), !stream.state.isOver else {
            staged.truncate(to: start)
            return hot.state.staged = consume staged
        }
        enqueue(stream, start..<end, staged.bytes)
        hot.state.staged = consume staged
        if isLast {
            _ = endCall(identifier)
            stream.state.isEnding = true
        }
        submitHead(stream)
    }

    func abandonMessage(_ staged: consuming ByteBuffer) {
        staged.truncate(to: hot.state.messageStart)
        hot.state.staged = consume staged
    }

    /// Notes bytes of `staged` as the stream's next ones.
    func enqueue(_ stream: StreamPlace, _ range: Range<Int>, _ staged: RawSpan) {
        hot.state.unsentBytes += range.count
        if stream.state.stagedStart == stream.state.stagedEnd {
            stream.state.stagedStart = range.lowerBound
            stream.state.stagedEnd = range.upperBound
            hot.state.stagedStreams.append(stream.state.identifier)
        } else if stream.state.stagedEnd == range.lowerBound {
            stream.state.stagedEnd = range.upperBound
        } else {
            // Other streams have written in between: the earlier bytes go where the order is kept.
            moveToBacklog(stream, staged)
            stream.state.stagedStart = range.lowerBound
            stream.state.stagedEnd = range.upperBound
        }
    }

    private func moveToBacklog(_ stream: StreamPlace, _ staged: RawSpan) {
        let range = stream.state.stagedStart..<stream.state.stagedEnd
        let sent = stream.state.backlogStart
        stream.state.backlog.removeFirst(sent)
        stream.state.backlogStart = 0
        unsafe staged.extracting(range).withUnsafeBytes { unsafe stream.state.backlog.append(contentsOf: $0) }
        stream.state.stagedStart = 0
        stream.state.stagedEnd = 0
    }

    /// Queues the answer's head if it is not yet, else says that there is more to send.
    func submitHead(_ stream: StreamPlace) {
        guard !stream.state.hasHead else { return resume(stream) }
        stream.state.hasHead = true
        let identifier = Int32(bitPattern: stream.state.identifier)
        unsafe hearth_submit_grpc_head(session, identifier, HTTP2Callbacks.read, stream.pointer)
    }

    /// Says that there is more to send of an answer whose head is queued.
    func resume(_ stream: StreamPlace) {
        guard stream.state.isDeferred else { return }
        stream.state.isDeferred = false
        unsafe nghttp2_session_resume_data(session, Int32(bitPattern: stream.state.identifier))
    }

    /// Queues the head of an answer whose messages will come later.
    func submitHead(_ identifier: UInt32) {
        guard let stream = find(identifier), !stream.state.hasHead else { return }
        submitHead(stream)
    }

    /// Whether the client's windows have room beyond what waits already.
    func hasWindow(_ identifier: UInt32) -> Bool {
        guard let stream = find(identifier) else { return false }
        let ofStream = unsafe nghttp2_session_get_stream_remote_window_size(session, Int32(bitPattern: identifier))
        let ofConnection = unsafe nghttp2_session_get_remote_window_size(session)
        return stream.state.unsentBytes < Int(min(ofStream, ofConnection))
    }

    // MARK: Statuses

    /// Ends the answer of a call that is over with a status: after its messages if it had any, else by itself.
    func submitStatus(_ identifier: UInt32, _ code: StatusCode, _ text: String) {
        guard let stream = find(identifier), !stream.state.isEnding else { return }
        stream.state.isEnding = true
        stream.state.code = code
        stream.state.text = text
        guard stream.state.hasHead else { return submitStatusAlone(stream) }
        guard code == .deadlineExceeded else { return submitHead(stream) }
        // With a closed window nothing would be sent, the end of the data included. Trailers may be sent, and the data
        // that waits is dropped.
        dropUnsent(stream)
        submitTrailers(stream)
    }

    func dropUnsent(_ stream: StreamPlace) {
        hot.state.unsentBytes -= stream.state.unsentBytes
        stream.state.backlog = []
        stream.state.backlogStart = 0
        stream.state.stagedStart = 0
        stream.state.stagedEnd = 0
    }

    /// Gives up what is left of answers that are over, of which next to nothing was taken between two calls of this.
    func dropStalledAnswers() {
        pool.forEachEnded { stream in
            let unsent = stream.state.unsentBytes
            defer { stream.state.unsentSeen = unsent }
            guard unsent > 0, stream.state.unsentSeen > 0, stream.state.unsentSeen - unsent < Self.progressBytesMin
            else { return }
            unsafe nghttp2_submit_rst_stream(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), Int32(bitPattern: stream.state.identifier),
                NGHTTP2_CANCEL.rawValue)
        }
    }

    /// The whole answer in one frame.
    private func submitStatusAlone(_ stream: StreamPlace) {
        stream.state.hasHead = true
        var fields = [(":status", Array("200".utf8)), ("content-type", Array("application/grpc".utf8))]
        fields += statusFields(stream)
        if stream.state.code == .unimplemented {
            fields.append(("grpc-accept-encoding", Array(MessageEncodingNames.accepted.utf8)))
        }
        submitAlone(stream, fields)
    }

    /// A refusal to speak gRPC at all.
    func submitHTTPStatus(_ stream: StreamPlace, _ status: HTTPStatus) {
        stream.state.isEnding = true
        stream.state.hasHead = true
        submitAlone(stream, [(":status", Array(String(status.code).utf8))])
    }

    /// An answer that is one HEADERS frame.
    func submitAlone(_ stream: StreamPlace, _ fields: [(String, [UInt8])]) {
        let identifier = stream.state.identifier
        unsafe Self.withFields(fields) { fields, count in
            unsafe nghttp2_submit_response(session, Int32(bitPattern: identifier), fields, count, nil)
        }
        answerEnds(stream)
    }

    /// The answer's last frame is queued. A client that has not ended its side is to stop.
    ///
    /// One of plain HTTP may not have read the answer yet: some (curl 7.88) drop it when their stream is reset while
    /// they send. What it still sends is dropped, until it ends or ``resetLingering(now:limit:)`` ends it.
    private func answerEnds(_ stream: StreamPlace) {
        guard !stream.state.clientEnded else { return }
        guard stream.state.http != nil, !hot.state.isLeaving else {
            return hot.state.halfOpen.append(stream.state.identifier)
        }
        stream.state.arrivingSince = hot.state.now
    }

    /// Resets streams whose replies were complete longer ago than the limit, while their clients continued to send.
    func resetLingering(now: UInt64, limit: UInt64) {
        pool.forEachEnded { stream in
            guard stream.state.http != nil, stream.state.isEnding, !stream.state.clientEnded,
                stream.state.unsentBytes == 0,
                let since = stream.state.arrivingSince, now - since >= limit
            else { return }
            stream.state.arrivingSince = nil
            hot.state.halfOpen.append(stream.state.identifier)
        }
    }

    private func submitTrailers(_ stream: StreamPlace) {
        let identifier = stream.state.identifier
        if stream.state.code == .ok {
            unsafe hearth_submit_grpc_ok(session, Int32(bitPattern: identifier))
        } else {
            unsafe Self.withFields(statusFields(stream)) { fields, count in
                unsafe nghttp2_submit_trailer(session, Int32(bitPattern: identifier), fields, count)
            }
        }
        answerEnds(stream)
    }

    private func statusFields(_ stream: StreamPlace) -> [(String, [UInt8])] {
        var fields = [("grpc-status", Array(String(stream.state.code.rawValue).utf8))]
        if !stream.state.text.isEmpty { fields.append(("grpc-message", StatusFields.encode(stream.state.text))) }
        return fields
    }

    /// Lends header fields in nghttp2's form, which copies them.
    static func withFields(
        _ fields: [(name: String, value: [UInt8])], _ body: (UnsafePointer<nghttp2_nv>, Int) -> Int32
    ) {
        var bytes = fields.flatMap { Array($0.name.utf8) + $0.value }
        unsafe bytes.withUnsafeMutableBufferPointer { bytes in
            var place = bytes.baseAddress!
            let list = unsafe fields.map { field in
                let nameCount = field.name.utf8.count
                defer { unsafe place += nameCount + field.value.count }
                return unsafe nghttp2_nv(
                    name: place, value: place + nameCount, namelen: nameCount, valuelen: field.value.count,
                    flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue))
            }
            _ = unsafe body(list, list.count)
        }
    }

    // MARK: Sending

    /// Appends frames to the output until there is nothing to send, windows are shut, or it has at least `limit` bytes.
    ///
    /// - Returns: whether there may be more to send now.
    func send(into output: inout ByteBuffer, upTo limit: Int) -> Bool {
        hot.state.output = consume output
        var mayHaveMore = true
        while mayHaveMore {
            mayHaveMore = takeFrames(upTo: limit)
            if mayHaveMore { break }
            // All answers are out: streams whose clients continue to send are closed in order.
            mayHaveMore = resetHalfOpen()
        }
        if !mayHaveMore { settleStaged() }
        output = hot.state.output.take()!
        return mayHaveMore
    }

    /// Has nghttp2 make frames; whether the limit stopped it.
    private func takeFrames(upTo limit: Int) -> Bool {
        while hot.state.outputBytes < limit {
            var frame: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(session, &frame)
            guard count > 0 else {
                if count < 0 { hot.state.failure = unsafe String(cString: nghttp2_strerror(Int32(count))) }
                return false
            }
            unsafe append(RawSpan(_unsafeStart: frame!, byteCount: count))
        }
        return true
    }

    private func append(_ bytes: RawSpan) { hot.state.output?.append(bytes) }

    private func resetHalfOpen() -> Bool {
        guard !hot.state.halfOpen.isEmpty else { return false }
        for identifier in hot.state.halfOpen {
            guard let stream = find(identifier), !stream.state.clientEnded else { continue }
            unsafe nghttp2_submit_rst_stream(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), Int32(bitPattern: identifier), NGHTTP2_NO_ERROR.rawValue)
        }
        hot.state.halfOpen.removeAll(keepingCapacity: true)
        return true
    }

    /// Nothing more can be sent now: what windows keep back moves to its streams, and the buffer is free.
    private func settleStaged() {
        switch hot.state.staged.take() {
        case .some(let staged):
            if hot.state.unsentBytes > 0 { moveAllToBacklog(staged) }
            hot.state.stagedStreams.removeAll(keepingCapacity: true)
            unsafe delegate.recycle(staged)
        case .none: break
        }
    }

    private func moveAllToBacklog(_ staged: borrowing ByteBuffer) {
        for identifier in hot.state.stagedStreams {
            guard let stream = find(identifier), stream.state.stagedEnd > stream.state.stagedStart else { continue }
            moveToBacklog(stream, staged.bytes)
        }
    }

    // MARK: Callbacks of nghttp2

    /// Says how many bytes of the stream's answer the next DATA frame takes, at most `length`.
    func offer(_ stream: StreamPlace, _ length: Int, _ flags: inout UInt32) -> Int {
        let unsent = stream.state.unsentBytes
        let count = min(length, unsent)
        if count == unsent && stream.state.isEnding {
            flags |= NGHTTP2_DATA_FLAG_EOF.rawValue
            if stream.state.http != nil {
                answerEnds(stream)
            } else {
                flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
                submitTrailers(stream)
            }
        } else if count == 0 {
            stream.state.isDeferred = true
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        if count > 0 { flags |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue }
        return count
    }

    /// Writes one DATA frame: its header as nghttp2 made it, and `count` bytes of the stream's answer.
    func write(_ header: RawSpan, _ count: Int, of stream: StreamPlace) -> Int32 {
        append(header)
        var left = count
        let old = min(left, stream.state.backlog.count - stream.state.backlogStart)
        if old > 0 {
            let start = stream.state.backlogStart
            unsafe append(stream.state.backlog.span.bytes.extracting(start..<start + old))
            stream.state.backlogStart += old
            left -= old
            if stream.state.backlogStart == stream.state.backlog.count {
                stream.state.backlog = []
                stream.state.backlogStart = 0
            }
        }
        if left > 0 {
            let start = stream.state.stagedStart
            appendStaged(start..<start + left)
            stream.state.stagedStart += left
        }
        hot.state.unsentBytes -= count
        return 0
    }

    private func appendStaged(_ range: Range<Int>) {
        switch hot.state.staged {
        case .some(let staged): hot.state.output?.append(staged.bytes.extracting(range))
        case .none: preconditionFailure("a stream's bytes are staged")
        }
    }
}
