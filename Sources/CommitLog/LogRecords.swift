// Reading a log while it is written: what a follower or an archive does.
//
// A reader takes whole frames, verified as recovery does it, and only those that are durable. It holds no segment: one
// may be trimmed and used again under it. The nonce of a frame then shows that it belongs to another life.
//
// An engine with a shared log has no segments: there a reader takes the groups of that log.

internal import Basics
internal import Glibc
package import Storage

/// The durable records of an open log after a version, in order. Used by one thread at a time.
///
///     let records = log.records(after: version)
///     while try records.next() { … records.version, records.record … }
///     while try records.nextGroup() { … records.version, records.group … }    // the same, many records at once
///
/// Memory: one group, and at least 1 MiB while there are many.
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
    /// What was read last.
    private var window = Window()
    private let buffer = HeapBuffer(capacity: 64 << 10)
    private var records: LogFrameRecords?
    private var current: FramedRecord?
    private var currentGroup: LogRecordGroup?

    /// The bytes of a segment that are in the buffer.
    private struct Window {
        var segment: LogSegment?
        /// Of the first byte in the segment.
        var offset = 0
        var byteCount = 0
    }

    /// Bytes to read at once while more than one group is durable.
    private static let windowBytes = 1 << 20
    /// More memory than this is given back after a large group.
    private static let bytesKeptMax = 8 << 20

    init(_ log: WriteAheadLog, after version: CommitVersion) {
        self.log = log
        first = version
    }

    /// The version of the record that `next()` went to, or of the last one of `nextGroup()`; undefined before that and
    /// at the end.
    package var version: CommitVersion { current?.version ?? currentGroup?.lastVersion ?? first }

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
            if try !readFrame() { return false }
        }
    }

    /// Goes to the records that come next in one group of commits, all at once; false if there are none yet.
    /// - Throws: as ``next()``.
    package func nextGroup() throws(StorageError) -> Bool {
        while true {
            current = nil
            currentGroup = try records?.rest(after: first)
            if currentGroup != nil { return true }
            if try !readFrame() { return false }
        }
    }

    /// The records that `nextGroup()` went to, as they lie in the log: version (8 bytes, little-endian), length (4
    /// bytes), bytes, for each. Until the next call of `next()` or `nextGroup()`; empty before that and at the end.
    package var group: RawSpan {
        @_lifetime(borrow self)
        get {
            let bytes = unsafe currentGroup?.bytes ?? UnsafeRawBufferPointer(start: nil, count: 0)
            return unsafe _overrideLifetime(RawSpan(_unsafeBytes: bytes), borrowing: self)
        }
    }

    /// How many records `group` has.
    package var groupCount: Int { currentGroup?.count ?? 0 }
}

// MARK: - Frames

extension LogRecords {
    /// All records up to here were read or are not wanted.
    private var reached: CommitVersion { max(first, CommitVersion(microseconds: previous ?? 0)) }

    /// Takes the next groups of a shared log; false if there are none.
    private func readGroups(of shared: any SharedLog) throws(StorageError) -> Bool {
        let bytes = try shared.records(after: reached, bytesMax: Self.windowBytes)
        if bytes.isEmpty { return false }
        buffer.shrink(to: Self.bytesKeptMax)
        buffer.reserve(bytes.count, keeping: 0)
        unsafe buffer.all.copyBytes(from: bytes)
        let copied = unsafe UnsafeRawBufferPointer(rebasing: buffer.all[..<bytes.count])
        let found = unsafe try LogFrameRecords(records: copied)
        guard found.lastVersion > reached.microseconds else {
            throw StorageError(
                .corrupt, "the shared log has groups that end with \(found.lastVersion) after \(reached)")
        }
        previous = found.lastVersion
        records = found
        return true
    }

    /// Reads the next durable frame; false if there is none.
    private func readFrame() throws(StorageError) -> Bool {
        (current, currentGroup, records) = (nil, nil, nil)
        // From here on there must be a frame after `reached`.
        guard reached < log.durableVersion else { return false }
        if let shared = log.shared { return try readGroups(of: shared) }
        var place = try nextPlace()
        /// Where the first frame that is not good was met.
        var bad: (segment: LogSegment, offset: Int)?
        while true {
            if let frame = try frame(at: place) {
                guard follows(frame) else { throw loss(at: bad ?? place) }
                segment = place.segment
                offset = place.offset + frame.frameBytes
                previous = frame.lastVersion
                let start = place.offset - window.offset
                let bytes = unsafe UnsafeRawBufferPointer(rebasing: buffer.all[start..<(start + frame.frameBytes)])
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

    /// The frame at a place, whose bytes are in the window then; nil if no whole frame of the segment's life is there.
    private func frame(at place: (segment: LogSegment, offset: Int)) throws(StorageError) -> LogFrameHeader? {
        // What was read before the frame was written shows no frame, or a part of one.
        if let frame = wholeFrame(at: place) { return frame }
        try read(LogFormat.frameHeaderBytes, at: place)
        guard let frame = header(at: place) else { return nil }
        let isLast = frame.lastVersion >= log.durableVersion.microseconds
        try read(isLast ? frame.frameBytes : max(frame.frameBytes, Self.windowBytes), at: place)
        return wholeFrame(at: place)
    }

    /// The frame at a place as far as the window shows it; its sum is not verified.
    private func header(at place: (segment: LogSegment, offset: Int)) -> LogFrameHeader? {
        let (segment, offset) = place
        let start = offset - window.offset
        guard window.segment === segment, start >= 0, window.byteCount - start >= LogFormat.frameHeaderBytes else {
            return nil
        }
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: buffer.all[start..<window.byteCount])
        return unsafe LogFrameHeader(
            unverified: bytes, at: offset, nonce: segment.nonce, bytesLeft: segment.byteCount - offset)
    }

    private func wholeFrame(at place: (segment: LogSegment, offset: Int)) -> LogFrameHeader? {
        guard let frame = header(at: place) else { return nil }
        let bytes = unsafe UnsafeRawBufferPointer(
            rebasing: buffer.all[(place.offset - window.offset)..<window.byteCount])
        return unsafe frame.isWhole(bytes) ? frame : nil
    }

    /// Reads bytes of a segment into the window, as far as the segment has them.
    private func read(
        _ byteCount: Int, at place: (segment: LogSegment, offset: Int)
    ) throws(StorageError) {
        let count = max(0, min(byteCount, place.segment.byteCount - place.offset))
        window.segment = nil
        buffer.shrink(to: Self.bytesKeptMax)
        buffer.reserve(count, keeping: 0)
        let target = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.all[..<count])
        let read = unsafe try place.segment.file.read(into: target, at: place.offset)
        window = Window(segment: place.segment, offset: place.offset, byteCount: read)
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
