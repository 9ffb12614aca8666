// Reading a log while it is written: what a follower or an archive does.
//
// A reader takes whole frames, verified as recovery does it, and only those that are durable. It holds no segment: one
// may be trimmed and used again under it. The nonce of a frame then shows that it belongs to another life.

internal import Basics
internal import Glibc
package import Storage

/// The durable records of an open log after a version, in order. Used by one thread at a time.
///
///     let records = log.records(after: version)
///     while try records.next() { … records.version, records.record … }
///
/// Memory: one group.
@safe
package final class LogRecords {
    private let log: WriteAheadLog
    /// Records up to here are not wanted.
    private let first: CommitVersion
    /// Where the next frame is expected.
    private var segment: LogSegment?
    private var offset = LogFormat.framesStart
    /// The last version of the frame read last; nil before the first.
    private var previous: UInt64?
    private let buffer = HeapBuffer(capacity: 64 << 10)
    private var records: LogFrameRecords?
    private var current: LogRecord?

    /// More memory than this is given back after a large group.
    private static let bytesKeptMax = 8 << 20

    init(_ log: WriteAheadLog, after version: CommitVersion) {
        self.log = log
        first = version
    }

    /// The version of the record that `next()` went to; undefined before that and at the end.
    package var version: CommitVersion { current?.version ?? first }

    /// The bytes of that record, until the next call of `next()`; empty before that and at the end.
    package var record: RawSpan {
        @_lifetime(borrow self)
        get {
            let bytes = unsafe current?.bytes ?? UnsafeRawBufferPointer(start: nil, count: 0)
            return unsafe _overrideLifetime(RawSpan(_unsafeBytes: bytes), borrowing: self)
        }
    }

    /// Goes to the next record; false if there is none yet. Later calls find what became durable since.
    /// - Throws: `versionTooOld` if records that come next have been trimmed, `corrupt` if they are damaged, with file
    ///   and offset, `inputOutput`. Another call throws again.
    package func next() throws(StorageError) -> Bool {
        while true {
            while let record = try records?.next() {
                if record.version <= first { continue }
                current = record
                return true
            }
            current = nil
            records = nil
            if try !readFrame() { return false }
        }
    }
}

// MARK: - Frames

extension LogRecords {
    /// All records up to here were read or are not wanted.
    private var reached: CommitVersion { max(first, CommitVersion(microseconds: previous ?? 0)) }

    /// Reads the next durable frame; false if there is none.
    private func readFrame() throws(StorageError) -> Bool {
        // From here on there must be a frame after `reached`.
        guard reached < log.durableVersion else { return false }
        var place = try nextPlace()
        /// Where the first frame that is not good was met.
        var bad: (segment: LogSegment, offset: Int)?
        while true {
            if let frame = try frame(at: place) {
                guard follows(frame) else { throw loss(at: bad ?? place) }
                segment = place.segment
                offset = place.offset + frame.frameBytes
                previous = frame.lastVersion
                let bytes = unsafe UnsafeRawBufferPointer(rebasing: buffer.all[..<frame.frameBytes])
                records = unsafe LogFrameRecords(frame, bytes, file: place.segment.file.path)
                return true
            }
            bad = bad ?? place
            // A segment may end early, or have no frame at all.
            guard let next = log.pool.segment(from: place.segment.sequence + 1) else { throw loss(at: bad ?? place) }
            place = (next, LogFormat.framesStart)
        }
    }

    /// Where the next frame is expected.
    private func nextPlace() throws(StorageError) -> (segment: LogSegment, offset: Int) {
        if let segment { return (segment, offset) }
        let start = log.position(after: first)
        guard let segment = log.pool.segment(from: start.segment) else { throw loss(at: nil) }
        return (segment, LogFormat.framesStart)
    }

    /// Whether a frame continues the chain.
    private func follows(_ frame: LogFrameHeader) -> Bool {
        guard frame.lastVersion > frame.previousVersion else { return false }
        if let previous { return frame.previousVersion == previous }
        return frame.previousVersion <= first.microseconds
    }

    /// Reads the frame at a place; nil if no whole frame of the segment's life is there.
    private func frame(at place: (segment: LogSegment, offset: Int)) throws(StorageError) -> LogFrameHeader? {
        let (segment, offset) = place
        let left = segment.byteCount - offset
        guard left >= LogFormat.frameHeaderBytes else { return nil }
        buffer.shrink(to: Self.bytesKeptMax)
        guard try read(segment, at: offset, LogFormat.frameHeaderBytes),
            let frame = unsafe LogFrameHeader(
                unverified: UnsafeRawBufferPointer(buffer.all), at: offset, nonce: segment.nonce, bytesLeft: left)
        else { return nil }
        buffer.reserve(frame.frameBytes, keeping: 0)
        guard try read(segment, at: offset, frame.frameBytes) else { return nil }
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: buffer.all[..<frame.frameBytes])
        // The segment may have got another life between both reads.
        let same = unsafe LogFrameHeader(unverified: bytes, at: offset, nonce: segment.nonce, bytesLeft: left)
        return unsafe same == frame && frame.isWhole(bytes) ? frame : nil
    }

    /// Reads bytes of a segment to the start of the buffer; false if the file does not have them.
    private func read(_ segment: LogSegment, at offset: Int, _ byteCount: Int) throws(StorageError) -> Bool {
        let target = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.all[..<byteCount])
        return unsafe try segment.file.read(into: target, at: offset) == byteCount
    }

    /// Why the records after `reached` cannot be read.
    private func loss(at place: (segment: LogSegment, offset: Int)?) -> StorageError {
        let base = log.pool.base
        if reached < base {
            return StorageError(
                .versionTooOld, "the log has no records up to version \(base) any more; \(reached) was read last")
        }
        return StorageError(
            .corrupt, "a group of the log after version \(reached) is damaged or missing",
            file: place?.segment.file.path,
            offset: place?.offset)
    }
}
