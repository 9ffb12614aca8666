// Frames: the maps and arrays being read.

import Glibc

extension DecodingSession {
    /// Opens a frame for an array, or for a map whose entries are noted already.
    @inline(__always)
    func pushFrame(_ kind: DecodingFrame.Kind, parent: Int, firstEntry: Int) throws -> Int {
        let index = unsafe state.pointee.frameCount
        if unsafe index == state.pointee.frameCapacity { try growFrames() }
        unsafe (state.pointee.frames + index).initialize(
            to: DecodingFrame(
                kind: kind, parent: parent, firstEntry: firstEntry, entryEnd: state.pointee.entryCount, index: 0,
                keyTable: nil, slot: nil))
        unsafe state.pointee.frameCount = index &+ 1
        return index
    }

    /// Opens a frame that is at the key or element that another frame is at now. Paths through it stay the same when
    /// the other one reads on.
    func pin(_ frame: Int) throws -> Int {
        let original = unsafe state.pointee.frames[frame]
        let pinned = try unsafe pushFrame(
            original.kind, parent: original.parent, firstEntry: state.pointee.entryCount)
        unsafe state.pointee.frames[pinned].index = original.index
        unsafe state.pointee.frames[pinned].keyTable = unsafe original.keyTable
        if original.hasDynamicKey, let key = unsafe state.pointee.dynamicKeys[frame] { note(key, inFrame: pinned) }
        return pinned
    }

    /// A frame, or one without a key in place of one that has ended: code has kept the decoder of a value for longer
    /// than the map or array of the value.
    @inline(__always)
    func living(_ frame: Int) throws -> Int {
        if unsafe frame < state.pointee.frameCount { return frame }
        return try unsafe pushFrame(.root, parent: -1, firstEntry: state.pointee.entryCount)
    }

    @inline(never)
    private func growFrames() throws {
        let capacity = unsafe state.pointee.frameCapacity
        if capacity >= Self.framesMax {
            throw DecodingError.dataCorrupted(
                .init(codingPath: [], debugDescription: "Too many containers were kept while decoding one document."))
        }
        unsafe state.pointee.frames.grow(from: capacity, to: capacity * 2)
        unsafe state.pointee.frameCapacity = capacity * 2
    }

    /// Gives up the frames from one on, unless a container of one of them was kept.
    @inline(__always)
    func closeFrames(downTo mark: Int) {
        if unsafe state.pointee.frameCount > mark { closeOpenFrames(downTo: mark) }
    }

    @inline(__always)
    private func closeOpenFrames(downTo mark: Int) {
        var index = unsafe state.pointee.frameCount
        while index > mark {
            index &-= 1
            let frame = unsafe state.pointee.frames + index
            if let slot = unsafe frame.pointee.slot {
                if unsafe !reclaim(slot) {
                    if unsafe state.pointee.depth > 0 { return pinParents(from: mark) }
                    unsafe keep(slot)
                }
                unsafe frame.pointee.slot = nil
            } else if unsafe frame.pointee.isKept && state.pointee.depth > 0 {
                return pinParents(from: mark)
            }
            unsafe state.pointee.entryCount = unsafe frame.pointee.firstEntry
            unsafe state.pointee.frameCount = index
        }
    }

    /// The frames from one on stay because a container was kept: their paths must stay the same, too.
    @inline(never)
    private func pinParents(from mark: Int) {
        for index in mark..<(unsafe state.pointee.frameCount) {
            let parent = unsafe state.pointee.frames[index].parent
            if parent < 0 || parent >= mark { continue }
            // Without room for a frame the path is of what is read then.
            guard let pinned = try? pin(parent) else { return }
            unsafe state.pointee.frames[pinned].isKept = true
            unsafe state.pointee.frames[index].parent = pinned
        }
    }

    @inline(__always)
    func cursor(_ range: ValueRange) -> WireCursor {
        unsafe WireCursor(state.pointee.base, range.start, range.end)
    }

    // MARK: Paths and errors

    /// The keys that lead to the value a frame holds.
    func codingPath(ofFrame frame: Int) -> [any CodingKey] {
        frame < 0 ? [] : unsafe codingPath(inFrame: state.pointee.frames[frame].parent)
    }

    /// The keys that lead to what is being read in a frame.
    func codingPath(inFrame frame: Int) -> [any CodingKey] {
        if unsafe frame < 0 || state.pointee.frames[frame].kind == .root { return [] }
        return codingPath(ofFrame: frame) + [currentKey(inFrame: frame)]
    }

    private func currentKey(inFrame index: Int) -> any CodingKey {
        let frame = unsafe state.pointee.frames[index]
        if frame.kind == .array { return PathKey(index: frame.index) }
        if let table = unsafe frame.keyTable {
            return unsafe table.pointee.keys[frame.index] ?? PathKey(stringValue: "")
        }
        if frame.hasDynamicKey, let key = unsafe state.pointee.dynamicKeys[index] { return key }
        // A frame whose place another one had before.
        if unsafe frame.index >= state.pointee.entryCount { return PathKey(stringValue: "") }
        return PathKey(stringValue: name(ofEntry: frame.index))
    }

    @inline(never)
    func malformed(_ error: MalformedBytes, parent: Int) -> DecodingError {
        .dataCorrupted(
            .init(
                codingPath: codingPath(inFrame: parent),
                debugDescription: "The document's bytes are malformed at offset \(error.offset)."))
    }
}
