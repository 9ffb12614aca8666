// Reading what is whole of a damaged log.
//
// Recovery ends at the first damage, because a store without some of its commits is not the store that was promised.
// A salvage takes every whole frame of the life of its segment instead, and says which commits are missing between
// them. A frame names the last version before it, so a gap is known exactly, wherever it is and whatever is left of it:
//
//     frame  …9    damage               frame  40…52          frame  53…60
//            └─ 9                        └─ follows 39: 10 to 39 are missing

internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage

/// Reads all whole frames of a log directory in order. Used by one thread.
struct LogSalvage {
    /// Takes a sentence about what cannot be read.
    typealias Note = (String) -> Void

    private let directory: String
    private let checkpoint: CommitVersion
    private let note: Note
    /// Commits up to here were taken, or are noted as missing, or are in the runs.
    private var last: UInt64
    /// Where the first thing that is not whole was met since the last whole frame.
    private var damage: (file: String, offset: Int)?
    /// Where a frame was begun, since the last whole one, that is not whole.
    private var unwhole: (file: String, offset: Int)?
    /// Whether a gap before the first frame is one: without a manifest nobody knows what the runs have.
    private var isStartKnown: Bool

    private init(
        _ directory: String, from firstSegment: UInt64, after checkpoint: CommitVersion, _ note: @escaping Note
    ) {
        self.directory = directory
        isStartKnown = firstSegment > 0
        self.checkpoint = checkpoint
        self.note = note
        last = checkpoint.microseconds
    }

    /// - Parameters:
    ///   - firstSegment: the first that is needed; 0 if that is not known.
    ///   - checkpoint: records up to here are not visited.
    /// - Throws: what `visit` throws.
    static func read(
        directory: String, firstSegment: UInt64, checkpoint: CommitVersion, note: @escaping Note,
        _ visit: LogRecovery.Visit
    ) throws {
        var salvage = LogSalvage(directory, from: firstSegment, after: checkpoint, note)
        var expected = firstSegment
        for sequence in salvage.sequences(from: firstSegment) {
            if expected > 0, sequence > expected { salvage.noteMissing(expected..<sequence) }
            expected = sequence + 1
            guard let segment = salvage.segment(sequence) else { continue }
            unsafe try salvage.readFrames(of: segment, visit)
        }
        salvage.noteEnd()
    }

    /// Notes a frame that is not whole and that no whole one follows: only the last one may be torn.
    private func noteEnd() {
        guard let unwhole else { return }
        note(
            "\(unwhole.file): the log ends at byte \(unwhole.offset) with commits that are not whole, after version "
                + "\(last); they were never acknowledged, or are damaged and missing")
    }

    private func sequences(from first: UInt64) -> [UInt64] {
        do throws(StorageError) {
            return try Directory.names(in: directory).compactMap { LogFormat.sequence(fileName: $0) }
                .filter { $0 >= first }.sorted()
        } catch {
            note(error.description)
            return []
        }
    }

    private func path(_ sequence: UInt64) -> String { directory + "/" + LogFormat.fileName(sequence: sequence) }

    private mutating func noteMissing(_ sequences: Range<UInt64>) {
        note("\(path(sequences.lowerBound)): \(sequences.count) segments of the log are missing from here on")
        damage = damage ?? (path(sequences.lowerBound), 0)
    }

    // MARK: Segments

    /// The bytes of a segment, zeros for those that cannot be read.
    @safe private struct Segment {
        let path: String
        let buffer: HeapBuffer
        let byteCount: Int
        let nonce: UInt64

        var bytes: UnsafeRawBufferPointer {
            unsafe UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer.all)[..<byteCount])
        }
    }

    /// A segment with its nonce; nil, and a note, if it has none that can be relied on.
    private mutating func segment(_ sequence: UInt64) -> Segment? {
        let path = path(sequence)
        do throws(StorageError) {
            let file = try File(path, flags: O_RDONLY)
            let size = try file.byteCount()
            let buffer = HeapBuffer(capacity: max(size, LogFormat.framesStart))
            readAll(file, size, into: buffer)
            let all = unsafe UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer.all)[..<size])
            if let header = unsafe SegmentHeader(all), header.sequence == sequence {
                if size < header.byteCount {
                    note("\(path) has been cut short at byte \(size) of \(header.byteCount)")
                    damage = damage ?? (path, size)
                }
                return Segment(
                    path: path, buffer: buffer, byteCount: min(size, header.byteCount), nonce: header.nonce)
            }
            note("\(path): the header of the segment is damaged")
            if let nonce = unsafe nonceOfFirstFrame(all) {
                return Segment(path: path, buffer: buffer, byteCount: size, nonce: nonce)
            }
        } catch {
            note(error.description)
        }
        damage = damage ?? (path, 0)
        return nil
    }

    private func readAll(_ file: File, _ size: Int, into buffer: HeapBuffer) {
        let whole = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.all[..<size])
        if unsafe (try? file.read(into: whole, at: 0)) == size { return }
        var offset = 0
        while offset < size {
            let end = min(offset + LogFormat.pageBytes, size)
            let page = unsafe UnsafeMutableRawBufferPointer(rebasing: whole[offset..<end])
            if unsafe (try? file.read(into: page, at: offset)) != page.count {
                note("\(file.path): \(page.count) bytes from byte \(offset) on cannot be read")
                unsafe page.initializeMemory(as: UInt8.self, repeating: 0)
            }
            offset = end
        }
    }

    /// The nonce of a segment without a header, from its first frame. Frames at other places do not count: a document
    /// may hold what looks like one. If the frame is of an earlier life, so are all; the runs have their commits, which
    /// the checkpoint shows.
    private func nonceOfFirstFrame(_ segment: UnsafeRawBufferPointer) -> UInt64? {
        let start = LogFormat.framesStart
        guard segment.count >= start + LogFormat.frameHeaderBytes else { return nil }
        let nonce = unsafe segment.word(at: start + 16)
        guard checkpoint > .zero, unsafe LogFrameHeader(segment: segment, at: start, nonce: nonce) != nil else {
            return nil
        }
        return nonce
    }

    // MARK: Frames

    private mutating func readFrames(of segment: Segment, _ visit: LogRecovery.Visit) throws {
        let bytes = unsafe segment.bytes
        var offset = LogFormat.framesStart
        while offset <= bytes.count - LogFormat.frameHeaderBytes {
            if unsafe bytes.word(at: offset + 16) == segment.nonce,
                let frame = unsafe LogFrameHeader(segment: bytes, at: offset, nonce: segment.nonce)
            {
                unsafe try take(frame, of: segment, visit)
                offset += frame.frameBytes
            } else {
                damage = damage ?? (segment.path, offset)
                if unwhole == nil, unsafe isBegun(bytes, at: offset, segment.nonce) {
                    unwhole = (segment.path, offset)
                }
                offset += 8
            }
        }
    }

    /// Whether a frame of this life that is not whole begins at a place, by its nonce or by the version that it
    /// follows: frames of an earlier life follow older ones.
    private func isBegun(_ bytes: UnsafeRawBufferPointer, at offset: Int, _ nonce: UInt64) -> Bool {
        let isNext = unsafe last > 0 && bytes.word(at: offset + 32) == last
        return unsafe bytes.word(at: offset + 16) == nonce
            || isNext && UInt32(truncatingIfNeeded: bytes.word(at: offset + 8)) == LogFormat.frameMagic
    }

    private mutating func take(_ frame: LogFrameHeader, of segment: Segment, _ visit: LogRecovery.Visit) throws {
        defer { (damage, unwhole) = (nil, nil) }
        if frame.lastVersion <= last { return }
        if frame.previousVersion > last, isStartKnown || damage != nil {
            let place = damage ?? (segment.path, frame.offset)
            note(
                "\(place.file): the log is damaged from byte \(place.offset) on; commits after version \(last) up to "
                    + "version \(frame.previousVersion) are missing, the documents that they changed may be older")
        }
        last = frame.lastVersion
        isStartKnown = true
        let range = frame.offset..<(frame.offset + frame.frameBytes)
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: segment.bytes[range])
        var records = unsafe LogFrameRecords(frame, bytes, file: segment.path)
        while let record = next(&records) {
            if record.version > checkpoint { unsafe try visit(record.version, record.bytes) }
        }
    }

    /// The next record; nil after the last, and after a note if the rest of the frame is not what its header says.
    private func next(_ records: inout LogFrameRecords) -> FramedRecord? {
        do throws(StorageError) {
            return try records.next()
        } catch {
            note(error.description)
            return nil
        }
    }
}
