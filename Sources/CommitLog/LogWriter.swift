// Building commit groups: records into frames, frames into whole pages of segments.
//
// Frames lie close together, but the disk is written in whole pages: a group starts with the page that the group before
// ended in, its bytes unchanged, and ends with zeros up to the next page. Sectors of older frames are rewritten with
// what they hold, so a torn write cannot harm them.
//
//      buffer   ┌── one page ──────────┬──────────────────────────────┬────────┐
//               │          │ old tail  │ frame being built            │ zeros  │
//               └──────────┴───────────┴──────────────────────────────┴────────┘
//                          ▲ a multiple of 4096 in the segment        ▲ where the next frame begins

internal import Basics
internal import Storage

/// A sealed group on its way to the disk.
@safe
package struct LogGroup: @unchecked Sendable {  // The writer leaves the buffer alone until the group is done.
    /// Where it goes; nil for a log that is shared.
    let segment: LogSegment?
    /// What to write there, and where in the segment: whole pages. For a shared log: the records alone.
    let bytes: UnsafeRawBufferPointer
    let offset: Int
    let lastVersion: CommitVersion

    /// Bytes to write, whole pages.
    package var byteCount: Int { unsafe bytes.count }
}

/// Collects the records of a group. Belongs to the commit thread.
@safe
final class LogWriter {
    private let pool: SegmentPool
    /// Groups are not written to segments: the directory is only read, or the log is shared.
    private let isDiscarding: Bool

    /// The segment being written; nil in a new directory, until the first group.
    private var segment: LogSegment?
    /// Where the next frame begins in `segment`.
    private var offset: Int
    /// The segment after, taken when the group being built will not fit into this one.
    private var following: LogSegment?

    /// The group being built, and the one that may still be on its way to the disk.
    private var building = HeapBuffer(capacity: 64 << 10)
    private var inFlight = HeapBuffer(capacity: 64 << 10)
    /// The bytes of the page at `offset` that come before it.
    private let tail = HeapBuffer(capacity: LogFormat.pageBytes)

    private var recordCount = 0
    private var payloadBytes = 0
    private var sealedVersion: CommitVersion
    private(set) var lastVersion: CommitVersion

    /// Continues the log at `offset` of `segment`, after the commit `lastVersion`; `tail` is what the page holds
    /// before `offset`.
    init(
        pool: SegmentPool, segment: LogSegment?, offset: Int, tail: UnsafeRawBufferPointer,
        lastVersion: CommitVersion, isDiscarding: Bool = false
    ) {
        self.pool = pool
        self.isDiscarding = isDiscarding
        self.segment = segment
        self.offset = segment == nil ? LogFormat.framesStart : offset
        sealedVersion = lastVersion
        self.lastVersion = lastVersion
        unsafe self.tail.all.copyMemory(from: tail)
    }

    var isEmpty: Bool { recordCount == 0 }

    /// Bytes of the group being built.
    var stagedBytes: Int { payloadBytes }

    /// Makes sure that the group with one more record of `recordBytes` has its place on the disk.
    /// - Parameter mayUseReserve: the record is of a commit that only deletes.
    /// - Throws: `full`; nothing has changed then.
    func reserve(recordBytes: Int, mayUseReserve: Bool) throws(StorageError) {
        let payload = payloadBytes + LogFormat.recordHeaderBytes + recordBytes
        let frame = LogFormat.roundedToWord(LogFormat.frameHeaderBytes + payload)
        let usedInBuffer = LogFormat.pageBytes + LogFormat.frameHeaderBytes + payloadBytes
        building.reserve(
            LogFormat.roundedToPage(LogFormat.pageBytes + frame) + LogFormat.pageBytes, keeping: usedInBuffer)
        if frame <= bytesLeft || isDiscarding { return }
        let needed = LogFormat.framesStart + frame
        if let following, needed <= following.byteCount { return }
        following = try pool.next(byteCount: needed, mayUseReserve: mayUseReserve)
    }

    /// Room for frames in the segment being written.
    private var bytesLeft: Int { (segment?.byteCount ?? 0) - offset }

    /// Adds a record, for which there is room.
    func append(_ record: UnsafeRawBufferPointer, version: CommitVersion) {
        let start = unsafe building.start + LogFormat.pageBytes + LogFormat.frameHeaderBytes + payloadBytes
        unsafe start.storeBytes(of: version.microseconds.littleEndian, as: UInt64.self)
        unsafe start.storeBytes(of: UInt32(record.count).littleEndian, toByteOffset: 8, as: UInt32.self)
        if let bytes = record.baseAddress {
            unsafe (start + LogFormat.recordHeaderBytes).copyMemory(from: bytes, byteCount: record.count)
        }
        payloadBytes += LogFormat.recordHeaderBytes + record.count
        recordCount += 1
        lastVersion = version
    }

    /// Ends the group without a place in the log.
    func discard() {
        sealedVersion = lastVersion
        recordCount = 0
        payloadBytes = 0
    }

    /// Ends the group for a log that is shared. The group before must be done: its buffer is used for the next.
    func sealRecords() -> LogGroup {
        precondition(recordCount > 0, "an empty group is sealed")
        let start = unsafe building.start + LogFormat.pageBytes + LogFormat.frameHeaderBytes
        let group = unsafe LogGroup(
            segment: nil, bytes: UnsafeRawBufferPointer(start: start, count: payloadBytes), offset: 0,
            lastVersion: lastVersion)
        startNextGroup()
        return group
    }

    /// Ends the group and gives it its place. The group before must be done: its buffer is used for the next.
    func seal() -> LogGroup {
        precondition(recordCount > 0, "an empty group is sealed")
        var header = LogFrameHeader(
            recordCount: recordCount, nonce: 0, offset: offset, previousVersion: sealedVersion.microseconds,
            lastVersion: lastVersion.microseconds, payloadBytes: payloadBytes)
        if header.frameBytes > bytesLeft {
            segment = following
            following = nil
            offset = LogFormat.framesStart
        }
        guard let segment else { preconditionFailure("a group is sealed that has no place reserved") }
        header.nonce = segment.nonce
        header.offset = offset
        let frame = unsafe building.start + LogFormat.pageBytes
        unsafe header.seal(frame)
        let group = unsafe placeInPages(frame, byteCount: header.frameBytes, in: segment)
        pool.noteGroup(upTo: lastVersion, in: segment.sequence)
        startNextGroup()
        return group
    }

    private func startNextGroup() {
        sealedVersion = lastVersion
        recordCount = 0
        payloadBytes = 0
        swap(&building, &inFlight)
        // The memory of a giant group is released.
        building.shrink(to: 8 << 20)
    }

    /// Completes the frame to whole pages, with the old tail before and zeros after it, and advances the offset.
    private func placeInPages(_ frame: UnsafeMutableRawPointer, byteCount: Int, in segment: LogSegment) -> LogGroup {
        let tailBytes = offset % LogFormat.pageBytes
        let start = unsafe frame - tailBytes
        unsafe start.copyMemory(from: tail.start, byteCount: tailBytes)
        let used = tailBytes + byteCount
        let pages = LogFormat.roundedToPage(used)
        unsafe (start + used).initializeMemory(as: UInt8.self, repeating: 0, count: pages - used)
        let newTailBytes = used % LogFormat.pageBytes
        unsafe tail.start.copyMemory(from: start + used - newTailBytes, byteCount: newTailBytes)
        let group = unsafe LogGroup(
            segment: segment, bytes: UnsafeRawBufferPointer(start: start, count: pages), offset: offset - tailBytes,
            lastVersion: lastVersion)
        offset += byteCount
        return group
    }
}
