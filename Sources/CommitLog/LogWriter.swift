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

    /// The bytes of the page at `offset` that come before it.
    private let tail = HeapBuffer(capacity: LogFormat.pageBytes)
    private var sealedVersion: CommitVersion
    private let hot: Confined<Hot>

    /// What every commit uses.
    private struct Hot {
        /// The group being built, and the one that may still be on its way to the disk.
        var building = HeapBuffer(capacity: 64 << 10)
        var inFlight = HeapBuffer(capacity: 64 << 10)
        var recordCount = 0
        var payloadBytes = 0
        var lastVersion: CommitVersion

        mutating func swapBuffers() {
            swap(&building, &inFlight)
            // The memory of a giant group is released.
            building.shrink(to: 8 << 20)
        }
    }

    var lastVersion: CommitVersion { hot.state.lastVersion }

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
        hot = Confined(Hot(lastVersion: lastVersion))
        unsafe self.tail.all.copyMemory(from: tail)
    }

    var isEmpty: Bool { hot.state.recordCount == 0 }

    /// Bytes of the group being built.
    var stagedBytes: Int { hot.state.payloadBytes }

    /// Makes sure that the group with one more record of `recordBytes` has its place on the disk.
    /// - Parameter mayUseReserve: the record is of a commit that only deletes.
    /// - Throws: `full`; nothing has changed then.
    func reserve(recordBytes: Int, mayUseReserve: Bool) throws(StorageError) {
        let payload = hot.state.payloadBytes + LogFormat.recordHeaderBytes + recordBytes
        let frame = LogFormat.roundedToWord(LogFormat.frameHeaderBytes + payload)
        let usedInBuffer = LogFormat.pageBytes + LogFormat.frameHeaderBytes + hot.state.payloadBytes
        hot.state.building.reserve(
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
        let records = unsafe hot.state.building.start + LogFormat.pageBytes + LogFormat.frameHeaderBytes
        let start = unsafe records + hot.state.payloadBytes
        unsafe start.storeBytes(of: version.microseconds.littleEndian, as: UInt64.self)
        unsafe start.storeBytes(of: UInt32(record.count).littleEndian, toByteOffset: 8, as: UInt32.self)
        if let bytes = record.baseAddress {
            unsafe (start + LogFormat.recordHeaderBytes).copyMemory(from: bytes, byteCount: record.count)
        }
        hot.state.payloadBytes += LogFormat.recordHeaderBytes + record.count
        hot.state.recordCount += 1
        hot.state.lastVersion = version
    }

    /// Ends the group without a place in the log.
    func discard() {
        sealedVersion = lastVersion
        hot.state.recordCount = 0
        hot.state.payloadBytes = 0
    }

    /// Ends the group for a log that is shared. The group before must be done: its buffer is used for the next.
    func sealRecords() -> LogGroup {
        precondition(hot.state.recordCount > 0, "an empty group is sealed")
        let start = unsafe hot.state.building.start + LogFormat.pageBytes + LogFormat.frameHeaderBytes
        let group = unsafe LogGroup(
            segment: nil, bytes: UnsafeRawBufferPointer(start: start, count: hot.state.payloadBytes), offset: 0,
            lastVersion: lastVersion)
        startNextGroup()
        return group
    }

    /// Ends the group and gives it its place. The group before must be done: its buffer is used for the next.
    func seal() -> LogGroup {
        precondition(hot.state.recordCount > 0, "an empty group is sealed")
        var header = LogFrameHeader(
            recordCount: hot.state.recordCount, nonce: 0, offset: offset, previousVersion: sealedVersion.microseconds,
            lastVersion: lastVersion.microseconds, payloadBytes: hot.state.payloadBytes)
        if header.frameBytes > bytesLeft {
            segment = following
            following = nil
            offset = LogFormat.framesStart
        }
        guard let segment else { preconditionFailure("a group is sealed that has no place reserved") }
        header.nonce = segment.nonce
        header.offset = offset
        let frame = unsafe hot.state.building.start + LogFormat.pageBytes
        unsafe header.seal(frame)
        let group = unsafe placeInPages(frame, byteCount: header.frameBytes, in: segment)
        pool.noteGroup(upTo: lastVersion, in: segment.sequence)
        startNextGroup()
        return group
    }

    private func startNextGroup() {
        sealedVersion = lastVersion
        hot.state.recordCount = 0
        hot.state.payloadBytes = 0
        hot.state.swapBuffers()
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
