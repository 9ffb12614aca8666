// The result of a commit or batch in few bytes, to be remembered for a repetition of the request.
//
//     | commit time, varint | run | run | ...
//
//     run     | shape, 1 | how many writes in a row, varint | then for each of them what the shape says |
//     shape   bit 0   the update time is that of the commit
//             bit 1   the update time follows, varint (neither bit: there is none)
//             bit 2   transform results follow: count, then length and bytes of each
//             bit 3   the write failed: status code, 1; length and text of the message
//
// The usual result, any number of documents written and nothing else, takes some dozen bytes.

internal import Basics
internal import DocumentModel

/// Encodes and decodes results.
enum EncodedResult {
    private static let updatedNow: UInt8 = 1
    private static let updatedBefore: UInt8 = 2
    private static let transformed: UInt8 = 4
    private static let failed: UInt8 = 8

    /// Writes a result into an empty writer.
    static func write(_ result: BatchWriteResult, into writer: inout ByteBuffer) {
        writer.reset()
        writer.appendVarint(result.commitMicroseconds)
        var position = 0
        while position < result.count {
            let shape = shape(of: result[position], result.commitMicroseconds)
            var end = position + 1
            while end < result.count, EncodedResult.shape(of: result[end], result.commitMicroseconds) == shape {
                end += 1
            }
            writer.append(byte: shape)
            writer.appendVarint(UInt64(end - position))
            if shape > updatedNow {
                for position in position..<end { write(result[position], shape: shape, into: &writer) }
            }
            position = end
        }
    }

    private static func shape(of outcome: Result<WriteResult, RequestError>, _ commitMicroseconds: UInt64) -> UInt8 {
        switch outcome {
        case .failure: failed
        case .success(let result):
            (result.updateMicroseconds == commitMicroseconds
                ? updatedNow : result.updateMicroseconds == nil ? 0 : updatedBefore)
                | (result.transformResults.isEmpty ? 0 : transformed)
        }
    }

    private static func write(
        _ outcome: Result<WriteResult, RequestError>, shape: UInt8, into writer: inout ByteBuffer
    ) {
        switch outcome {
        case .failure(let error):
            writer.append(byte: error.code.rawValue)
            error.message.withUTF8Span { message in
                writer.appendVarint(UInt64(message.byteCount))
                writer.append(message)
            }
        case .success(let result):
            if shape & updatedBefore != 0, let time = result.updateMicroseconds { writer.appendVarint(time) }
            if shape & transformed == 0 { return }
            writer.appendVarint(UInt64(result.transformResults.count))
            for value in result.transformResults {
                writer.appendVarint(UInt64(value.bytes.count))
                writer.append(value.bytes)
            }
        }
    }

    /// Reads a result back; nil if the bytes are not of this format.
    static func read(_ bytes: RawSpan) -> BatchWriteResult? {
        do throws(InvalidDocument) {
            var reader = WireReader(bytes)
            var result = BatchWriteResult(commitMicroseconds: try reader.varint())
            while !reader.isAtEnd {
                let shape = reader.bytes[byteAt: reader.position]
                reader.position += 1
                let count = try reader.varint()
                // A request of ten megabytes cannot hold more writes than this.
                guard count <= UInt64(Limits.requestBytes), shape <= failed else { return nil }
                for _ in 0..<count {
                    guard let outcome = try read(&reader, shape: shape, result.commitMicroseconds) else { return nil }
                    result.append(outcome)
                }
            }
            return result
        } catch {
            return nil
        }
    }

    private static func read(
        _ reader: inout WireReader, shape: UInt8, _ commitMicroseconds: UInt64
    ) throws(InvalidDocument) -> Result<WriteResult, RequestError>? {
        if shape == failed {
            guard !reader.isAtEnd, let code = StatusCode(rawValue: reader.bytes[byteAt: reader.position]) else {
                return nil
            }
            reader.position += 1
            let message = String(repairingUTF8: try reader.lengthDelimited())
            return .failure(RequestError(code, message))
        }
        var result = WriteResult(updateMicroseconds: shape & updatedNow != 0 ? commitMicroseconds : nil)
        if shape & updatedBefore != 0 { result.updateMicroseconds = try reader.varint() }
        if shape & transformed != 0 {
            let count = try reader.varint()
            guard count <= UInt64(Limits.transformsPerDocument) else { return nil }
            for _ in 0..<count {
                result.transformResults.append(EncodedValue(canonical: [UInt8](copying: try reader.lengthDelimited())))
            }
        }
        return .success(result)
    }
}
