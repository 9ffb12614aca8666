// Reading the JSON of requests and of pages. It takes up to 100 ns for each byte, so a body at its limit would hold up
// the other connections of the loop for most of a second. A large one is read in shares of the loop:
//
//     body ──▶ read ─┬─ small ──▶ JSONMessageReader ──────────────────────────────▶ done
//                    └─ large ──▶ a copy ──▶ share ──▶ (others) ──▶ share ──▶ ... ──▶ done

internal import Basics
internal import DocumentModel
internal import EventLoops
internal import FirestoreJSON

/// Makes the JSON texts of one loop's clients into messages. Confined to the loop.
final class JSONBodies {
    /// Bytes of a body that is read at once.
    static let bytesAtOnce = 16 << 10
    /// Bytes between two looks at the clock.
    fileprivate static let stepBytes = 4 << 10
    private var reader = JSONMessageReader()
    /// Bytes of all large bodies that are being read.
    fileprivate(set) var heldBytes = 0
    private let heldBytesMax: Int

    /// - Parameter heldBytesMax: bytes of large bodies that are read beside each other; more are RESOURCE_EXHAUSTED.
    init(heldBytesMax: Int = 64 << 20) { self.heldBytesMax = heldBytesMax }

    /// Takes the message, or why the text is none.
    typealias Completion = (_ message: consuming ByteBuffer, _ error: RequestError?) -> Void

    /// Appends what a text spells to `message`, and gives it to `done`: now if the text is small, else later on the
    /// thread of the loop, as long as it is wanted.
    ///
    /// - Parameter body: lent for the call of this function.
    func read(
        _ body: RawSpan, _ type: MessageType, onto message: consuming ByteBuffer, on loop: EventLoop,
        while isWanted: @escaping () -> Bool, _ done: @escaping Completion
    ) {
        guard body.byteCount > Self.bytesAtOnce else {
            var failure: RequestError?
            do throws(RequestError) { try reader.append(body, type, to: &message) } catch { failure = error }
            return done(message, failure)
        }
        guard heldBytes + body.byteCount <= heldBytesMax else {
            return done(message, RequestError(.resourceExhausted, "Too many large requests are being read."))
        }
        loop.needsWork(LargeBody(body, type, message, loop, self, while: isWanted, done))
    }
}

/// A body that is being read.
private final class LargeBody: LoopWork {
    private let body: [UInt8]
    private var reader = JSONMessageReader()
    private var message: ByteBuffer
    private let loop: EventLoop
    private let bodies: JSONBodies
    private let isWanted: () -> Bool
    private let done: JSONBodies.Completion
    /// Up to where the body is read next.
    private var limit = 0

    init(
        _ body: RawSpan, _ type: MessageType, _ message: consuming ByteBuffer, _ loop: EventLoop, _ bodies: JSONBodies,
        while isWanted: @escaping () -> Bool, _ done: @escaping JSONBodies.Completion
    ) {
        self.body = [UInt8](copying: body)
        self.message = message
        self.loop = loop
        self.bodies = bodies
        self.isWanted = isWanted
        self.done = done
        reader.begin(type)
        bodies.heldBytes += self.body.count
    }

    deinit { bodies.heldBytes -= body.count }

    func work() {
        guard isWanted() else { return }
        let bytes = body
        do throws(RequestError) {
            repeat {
                limit = min(limit + JSONBodies.stepBytes, bytes.count)
                let isWhole = try reader.read(bytes.byteSpan, upTo: limit, to: &message)
                loop.spend(JSONBodies.stepBytes)
                if isWhole { return end(nil) }
            } while !loop.isShareSpent
            loop.needsWork(self)
        } catch {
            end(error)
        }
    }

    private func end(_ error: RequestError?) {
        var whole = ByteBuffer(capacity: 0)
        swap(&whole, &message)
        done(whole, error)
    }
}
