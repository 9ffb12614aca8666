// TLS between a channel's socket and its driver: the driver sees plain text only.
//
//     socket ──ciphertext──▶ receiveSecured ──plain text──▶ process ──▶ driver
//     driver ──▶ output ──plain text──▶ seal ──ciphertext──▶ socket

internal import Basics
package import TLS

extension Channel {
    /// Has all bytes that are not consumed yet, and all that follow in both directions, go through `session`.
    ///
    /// A server calls it in `received`, a client before the first read. What the driver writes before the handshake is
    /// done leaves after it. A handshake that fails ends the channel with ``CloseReason/tls(_:)``.
    package func secure(_ session: TLSSession) {
        hot.state.tls = session
        hot.state.beginsTLS = true
        needsSettling()
    }

    /// What both sides agreed on; nil without TLS, and before the handshake is done.
    package var handshake: TLSHandshake? { hot.state.tls?.handshake }

    /// Decrypts what has come and shows it to the driver.
    func receiveSecured(_ ciphertext: RawSpan) {
        guard let session = hot.state.tls else { return }
        hot.state.beginsTLS = false
        beginSlice()
        var plain = loop.takeWriter()
        let failure = decrypt(session, ciphertext, into: &plain)
        if plain.count > 0 { take(plain.bytes) }
        loop.recycle(plain)
        guard !isClosing else { return }
        if session.outputBytes > 0 { needsSettling() }
        if let failure {
            // The alert, if there is one, should reach the other side.
            flush()
            close(.tls(failure))
        } else if session.hasReceivedClose {
            flush()
            endInput()
        } else {
            // Records may have taken it that brought the driver nothing, or a byte each.
            endSliceIfOver()
        }
    }

    private func decrypt(_ session: TLSSession, _ ciphertext: RawSpan, into plain: inout ByteBuffer) -> TLSError? {
        do throws(TLSError) {
            try session.receive(ciphertext, into: &plain)
            return nil
        } catch {
            return error
        }
    }

    /// Gives plain text to the large frame that waits for it, then to the driver, in the order of arrival.
    private func take(_ plain: RawSpan) {
        var rest = plain
        while rest.byteCount > 0, let large = hot.state.large {
            let room = unsafe large.room()
            let count = min(room.count, rest.byteCount)
            unsafe rest.extracting(0..<count).withUnsafeBytes { unsafe room.copyMemory(from: $0) }
            rest = rest.extracting(count..<rest.byteCount)
            large.filled(count)
            // The room of a large frame grows with what has come.
            guard large.isWhole else { continue }
            hot.state.large = nil
            large.withBytes(process)
            if isClosing { return }
        }
        guard rest.byteCount > 0, !hot.state.readsToEnd, hot.state.closesAfterFlush == nil else { return }
        if hot.state.carry.isEmpty, !isInputHeld { return process(rest) }
        unsafe rest.withUnsafeBytes { unsafe hot.state.carry.append(contentsOf: $0) }
        if !isInputHeld { processCarry() }
    }

    /// What is to be written now: the handshake's bytes, and the output encrypted once the handshake is done; nil if
    /// there is nothing.
    ///
    /// - Throws: what `TLSSession.send` does.
    func sealOutput(_ session: TLSSession) throws(TLSError) -> ByteBuffer? {
        var sealed = loop.takeWriter()
        if session.handshake != nil, session.failure == nil, !session.hasSentClose, hot.state.outputBytes > 0,
            var plain = hot.state.output.take()
        {
            hot.state.outputBytes = 0
            var sent = 0
            while sent < plain.count {
                sent += try session.send(plain.bytes.extracting(sent..<plain.count))
                session.takeOutput(into: &sealed)
            }
            plain.reset()
            loop.recycle(plain)
        }
        if hot.state.closesAfterFlush != nil { session.close() }
        session.takeOutput(into: &sealed)
        if sealed.count > 0 { return sealed }
        loop.recycle(sealed)
        return nil
    }
}
