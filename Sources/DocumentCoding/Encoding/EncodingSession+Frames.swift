// Frames: the values being encoded, from the document down to the innermost.

extension EncodingSession {
    /// Opens a frame for the value that begins here. The caller has written what stands before the value.
    @inline(__always)
    func pushFrame(entryTag: UInt8 = ValueWireTag.mapEntry) throws -> Int {
        let index = unsafe state.pointee.top &+ 1
        if unsafe index >= state.pointee.frameCapacity { try growFrames() }
        unsafe state.pointee.lastSerial &+= 1
        let start = unsafe state.pointee.count
        unsafe (state.pointee.frames + index).initialize(
            to: EncodingFrame(
                kind: .undecided, entryTag: entryTag, isUnsorted: false, hasChildren: false,
                serial: state.pointee.lastSerial, valueStart: start, bodyStart: start, isLong: false,
                firstEntry: state.pointee.entryCount, count: 0, lastPrefix: 0, partStart: start, keyTable: nil,
                keyIndex: 0, slots: nil))
        unsafe state.pointee.top = index
        return index
    }

    @inline(never)
    private func growFrames() throws {
        let capacity = unsafe state.pointee.frameCapacity
        if capacity + depthAbove >= Self.depthMax {
            throw EncodingError.invalidValue(
                "...",
                .init(codingPath: codingPath(), debugDescription: "Values are nested more than \(Self.depthMax) deep."))
        }
        unsafe state.pointee.frames.grow(from: capacity, to: capacity * 2)
        unsafe state.pointee.frameCapacity = capacity * 2
    }

    /// Frames above this session, for sessions of nested containers.
    private var depthAbove: Int {
        guard let parent = unsafe state.pointee.parent else { return 0 }
        return parent.session.depthAbove + parent.frame + 1
    }

    /// Makes the frame's value a map, whose entries follow.
    @inline(__always)
    func beginMap(_ frame: Int) {
        putHead(ValueWireTag.map, frame)
        unsafe state.pointee.frames[frame].kind = .map
    }

    /// Makes the frame's value an array, whose elements follow.
    @inline(__always)
    func beginArray(_ frame: Int) {
        putHead(ValueWireTag.array, frame)
        unsafe state.pointee.frames[frame].kind = .array
    }

    /// Writes the tag of a map or array and leaves room for its length.
    @inline(__always)
    private func putHead(_ tag: UInt8, _ frame: Int) {
        reserve(3)
        put(byte: tag)
        if unsafe state.pointee.expectsLong {
            unsafe state.pointee.expectsLong = false
            unsafe state.pointee.frames[frame].isLong = true
            putLongLength()
        } else {
            put(byte: 0)
        }
        unsafe state.pointee.frames[frame].bodyStart = unsafe state.pointee.count
    }

    /// Fills in the length of a map or array that ends here.
    @inline(__always)
    private func fillLength(of frame: UnsafeMutablePointer<EncodingFrame>) {
        let place = unsafe frame.pointee.bodyStart &- 1
        if unsafe !frame.pointee.isLong { return fillLength(at: place) }
        let length = unsafe state.pointee.count &- frame.pointee.bodyStart
        if Self.isLong(length) { return fillTwoBytes(at: place &- 1, length) }
        removeByte(at: place)
        fillLength(at: place &- 1)
    }

    /// Ends the innermost frame: gathers nested containers, sorts entries, fills in the length.
    ///
    /// - Returns: false when the value was a sentinel and leaves nothing.
    @inline(__always)
    @discardableResult
    func closeFrame(_ index: Int) throws -> Bool {
        let frame = unsafe state.pointee.frames + index
        if unsafe frame.pointee.hasChildren { try gatherChildren(of: index) }
        switch unsafe frame.pointee.kind {
        case .map:
            if unsafe frame.pointee.isUnsorted { unsafe sortEntries(of: frame) }
            unsafe state.pointee.entryCount = unsafe frame.pointee.firstEntry
            // The entries of a document are sent as they are, without a length before them.
            if unsafe !frame.pointee.isDocument { unsafe fillLength(of: frame) }
        case .array:
            try checkArray(index)
            unsafe fillLength(of: frame)
        case .undecided:
            // A value that encodes nothing is an empty map.
            reserve(2)
            put(byte: ValueWireTag.map)
            put(byte: 0)
        case .single, .omitted: break
        }
        unsafe popFrame(frame)
        return unsafe frame.pointee.kind != .omitted
    }

    @inline(__always)
    private func popFrame(_ frame: UnsafeMutablePointer<EncodingFrame>) {
        unsafe frame.pointee.serial = 0
        unsafe state.pointee.top &-= 1
        if unsafe frame.pointee.slots != nil { unsafe reclaimContainers(frame.pointee.slots) }
    }

    /// Gives up the frames above one, with what they hold; for errors.
    @inline(never)
    func abandonFrames(above index: Int) {
        while unsafe state.pointee.top > index {
            let frame = unsafe state.pointee.frames + state.pointee.top
            if unsafe frame.pointee.hasChildren { unsafe abandonChildren(of: state.pointee.top) }
            unsafe state.pointee.entryCount = unsafe frame.pointee.firstEntry
            unsafe popFrame(frame)
        }
    }

    /// Firestore has no arrays of arrays.
    @inline(__always)
    private func checkArray(_ index: Int) throws {
        if unsafe state.pointee.isTree { return }
        var outer = index - 1
        // Values that encode themselves as one other value lie between.
        while outer >= 0, unsafe state.pointee.frames[outer].kind == .undecided { outer -= 1 }
        let isNested = outer < 0 ? isElementOfParentArray : unsafe state.pointee.frames[outer].kind == .array
        if isNested, unsafe !state.pointee.allowsNestedArrays {
            throw invalidValue("[[...]]", "Nested arrays are not supported.", frame: index)
        }
    }

    /// Whether a frame is open and is still the one that a handle was made for.
    @inline(__always)
    func isOpen(_ frame: Int, _ serial: UInt32) -> Bool {
        unsafe frame <= state.pointee.top && state.pointee.frames[frame].serial == serial
    }
}

/// A container or an encoder outlived the value it belongs to: there is nothing left to write to.
@inline(never)
func encodingHandleOutlived() -> Never {
    programmingError(
        """
        An Encoder or one of its containers was used after the value it was made for had been encoded, or while a \
        value inside that value was being encoded.
        """)
}
