// What must hold for messages as JSON, whatever bytes arrive. Called by tests and by the fuzzer.

import Basics
import DocumentModel

#if canImport(FirestoreJSON)
    import FirestoreJSON
#endif

enum JSONMessageCheck {
    private static let types = ["RunQueryRequest", "CommitRequest", "Document", "StructuredAggregationQuery"]
        .map { Schema.shared.message("google.firestore.v1.\($0)") }

    /// The broken property, or nil. The first byte chooses the message and whether the rest is JSON or wire bytes.
    static func violation(_ bytes: RawSpan) -> String? {
        guard bytes.byteCount > 0 else { return nil }
        let choice = Int(bytes[byteAt: 0])
        let type = types[choice % types.count]
        let rest = bytes.extracting(droppingFirst: 1)
        return choice & 0x80 == 0 ? readingViolation(rest, type) : writingViolation(rest, type)
    }

    /// JSON that is taken: what it becomes must be written as JSON that becomes the same.
    private static func readingViolation(_ json: RawSpan, _ type: MessageType) -> String? {
        for step in [1, 7, 100] where readInSteps(json, type, step) != outcome(json, type) {
            return "JSON that is read in steps of \(step) bytes becomes something else"
        }
        guard let first = read(json, type) else { return nil }
        for isPretty in [false, true] {
            guard let text = write(first, type, isPretty: isPretty) else {
                // Timestamps outside of years 1...9999 cannot come from JSON; nothing else is refused.
                return "what was read cannot be written"
            }
            guard let second = read(text.byteSpan, type) else {
                return "what was written cannot be read: \(String(decoding: text, as: UTF8.self))"
            }
            guard let again = write(second, type, isPretty: isPretty), again == text else {
                return "JSON changes on its way round"
            }
            if second.count > first.count { return "the message grows on its way round" }
        }
        return nil
    }

    /// Wire bytes, well formed or not, must not trap, and what is written of them must be JSON.
    private static func writingViolation(_ wire: RawSpan, _ type: MessageType) -> String? {
        guard let text = write([UInt8](copying: wire), type, isPretty: false) else { return nil }
        guard UTF8Validation.isValid(text.byteSpan) else { return "JSON that is not UTF-8" }
        return nil
    }

    private static func read(_ json: RawSpan, _ type: MessageType) -> [UInt8]? { try? outcome(json, type).get() }

    private static func outcome(_ json: RawSpan, _ type: MessageType) -> Result<[UInt8], RequestError> {
        var reader = JSONMessageReader()
        var output = ByteBuffer()
        do throws(RequestError) { try reader.append(json, type, to: &output) } catch { return .failure(error) }
        return .success(output.copyBytes())
    }

    private static func readInSteps(
        _ json: RawSpan, _ type: MessageType, _ step: Int
    ) -> Result<[UInt8], RequestError> {
        var reader = JSONMessageReader()
        var output = ByteBuffer()
        var limit = 0
        reader.begin(type)
        do throws(RequestError) {
            repeat { limit = min(limit + step, json.byteCount) } while try !reader.read(json, upTo: limit, to: &output)
        } catch {
            return .failure(error)
        }
        return .success(output.copyBytes())
    }

    private static func write(_ wire: [UInt8], _ type: MessageType, isPretty: Bool) -> [UInt8]? {
        let writer = JSONMessageWriter(isPretty: isPretty)
        var output = ByteBuffer()
        do throws(InvalidDocument) { try writer.append(wire.byteSpan, type, to: &output) } catch { return nil }
        return output.copyBytes()
    }
}
