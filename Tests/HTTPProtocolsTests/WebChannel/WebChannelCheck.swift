// What must hold for WebChannel, whatever a page and its network do. Called by tests and by the fuzzer.

import Basics

#if canImport(HTTPProtocols)
    @testable import HTTPProtocols
#endif

enum WebChannelCheck {
    static let limits: WebChannelLimits = {
        var limits = WebChannelLimits()
        limits.unacknowledgedBytesMax = 600
        limits.unreadBytesMax = 400
        limits.waitingMessagesMax = 12
        limits.waitingBytesMax = 200
        return limits
    }()

    /// The broken property, or nil.
    static func violation(_ bytes: RawSpan) -> String? {
        if let broken = parsing(bytes) { return broken }
        var page = Page()
        for at in 0..<bytes.byteCount {
            if let broken = page.step(bytes[byteAt: at]) { return "step \(at): \(broken)" }
        }
        return page.finish()
    }

    /// The bytes as a query and as a body.
    private static func parsing(_ bytes: RawSpan) -> String? {
        for isPost in [true, false] {
            guard let request = try? WebChannelRequest(isPost: isPost, query: bytes) else { continue }
            if request.kind == .open, !isPost || !request.session.isEmpty { return "\(request) opens a session" }
            if request.kind != .open, request.session.isEmpty { return "\(request) names no session" }
            if request.session.utf8.count > 64 { return "the identifier has \(request.session.utf8.count) bytes" }
        }
        if let post = try? WebChannelPost(bytes), post.messages.count > WebChannelPost.messagesMax {
            return "\(post.messages.count) messages"
        }
        return nil
    }

    /// A page, its network and the server's session; each step is a byte.
    private struct Page {
        private var session = WebChannelSession(limits: WebChannelCheck.limits, now: 0)
        private var now: UInt64 = 0
        /// Messages that the page has sent at least once; the text of each is its number.
        private var messagesSent: UInt64 = 0
        private var messagesDelivered: UInt64 = 0
        /// Messages that the session took before one with a lower number.
        private var early: Set<UInt64> = []
        /// Payloads of the service, by the order of their numbers; nil stands for a no-op.
        private var arraysMade: [String] = []
        private var arraysReceived: [String] = []
        private var lastReceived: UInt64 = 0
        private var isLongPoll = false
        /// Whether the open response has a frame.
        private var hasFrame = false

        mutating func step(_ byte: UInt8) -> String? {
            let amount = UInt64(byte >> 3)
            switch byte & 7 {
            case 0: return post(first: messagesSent, count: amount % 5)
            // A repeat, or a request that overtook another.
            case 1: return post(first: messagesSent > amount ? messagesSent - amount : 0, count: amount % 7)
            case 2: return post(first: messagesSent + amount, count: 1)
            case 3: if session.hasRoom { append("é😀 \(amount) \(arraysMade.count)") }
            case 4:
                isLongPoll = amount & 1 == 1
                guard session.acknowledge(lastReceived, now: now) else { return "an acknowledgement is refused" }
                session.openBackChannel(after: lastReceived, holdMilliseconds: isLongPoll ? 5_000 : nil, now: now)
                hasFrame = false
                return drain(isLost: false)
            case 5: return drain(isLost: true)
            case 6:
                now += amount * 1_000
                if session.tick(now: now) == .expired, session.hasBackChannel { return "expired with a back channel" }
                return drain(isLost: false)
            default:
                if amount == 1 { session.yieldBackChannel() }
                // An acknowledgement of what was not sent.
                if amount > 8, session.acknowledge(UInt64.max - amount, now: now) { return "accepts \(amount)" }
                return drain(isLost: false)
            }
            return bounds()
        }

        private mutating func post(first: UInt64, count: UInt64) -> String? {
            let messages = (first..<first + count).map { Array("\($0)".utf8) }
            do throws(RequestError) {
                try session.receive(messages, from: first, now: now)
                if first <= messagesSent { messagesSent = max(messagesSent, first + count) }
                early.formUnion((first..<first + count).filter { $0 >= messagesDelivered })
            } catch {
                if error.code != .resourceExhausted { return "\(error)" }
            }
            while let message = session.takeMessage() {
                let text = String(decoding: message, as: UTF8.self)
                if text != "\(messagesDelivered)" { return "\(text) is delivered after \(messagesDelivered) messages" }
                early.remove(messagesDelivered)
                messagesDelivered += 1
            }
            let waiting = early.reduce(0) { $0 + "\($1)".utf8.count }
            if session.waitingBytes != waiting { return "\(session.waitingBytes) bytes wait, not \(waiting)" }
            // What came early counts as sent once the gap before it is closed.
            messagesSent = max(messagesSent, messagesDelivered)
            return bounds()
        }

        private mutating func append(_ text: String) {
            arraysMade.append(text)
            session.append(Array("\"\(text)\"".utf8))
        }

        /// Takes what the back channel sends. A lost response is the end of the back channel.
        private mutating func drain(isLost: Bool) -> String? {
            while let output = session.takeOutput(now: now) {
                if output.isLast == session.hasBackChannel { return "isLast is \(output.isLast)" }
                if isLongPoll, !output.isLast { return "a long poll continues after a frame" }
                hasFrame = hasFrame || !output.frame.isEmpty
                // A page takes it for a failure.
                if output.isLast, !hasFrame { return "a response is empty" }
                if !isLost, !output.frame.isEmpty, let broken = receive(output.frame) { return broken }
            }
            if isLost { session.closeBackChannel(now: now) }
            return bounds()
        }

        private mutating func receive(_ frame: [UInt8]) -> String? {
            let text = String(decoding: frame, as: UTF8.self)
            guard let end = text.firstIndex(of: "\n"), let length = Int(text[..<end]) else { return "no length" }
            let json = text[text.index(after: end)...]
            if json.utf16.count != length { return "the length is \(length), not \(json.utf16.count)" }
            for part in json.dropFirst().dropLast().split(separator: "]").map({ $0.drop { $0 == "," } }) {
                let halves = part.dropFirst().split(separator: ",", maxSplits: 1)
                // The rest of a no-op, which has brackets.
                guard halves.count == 2, let id = UInt64(halves[0]) else { continue }
                if id > lastReceived + 1 { return "array \(id) comes after \(lastReceived)" }
                if id <= lastReceived { continue }
                lastReceived = id
                if halves[1].hasPrefix("\"") { arraysReceived.append(String(halves[1].dropFirst().dropLast())) }
            }
            return nil
        }

        private func bounds() -> String? {
            let limits = WebChannelCheck.limits
            // One array may exceed the limit, and a no-op may follow it.
            let max = limits.waitingBytesMax + limits.unacknowledgedBytesMax + 300
            return session.heldBytes > max || session.heldBytes < 0 ? "\(session.heldBytes) bytes are held" : nil
        }

        /// The page gets everything once it asks for as long as it takes.
        mutating func finish() -> String? {
            for _ in 0..<4 {
                if let broken = step(4) { return broken }
            }
            return arraysReceived == arraysMade ? nil : "\(arraysMade.count) made, \(arraysReceived.count) received"
        }
    }
}
