internal import Basics
internal import CPrefetch
internal import Storage

/// A file of a run, as far as the run uses it.
@safe
struct RunSlice {
    let part: RunPart
    /// Keys below this are not part of the run any more: a merge has taken them. Empty if all are.
    let lowerBound: UnsafeRawBufferPointer
    /// That of the file, in memory of the set.
    let highestKey: UnsafeRawBufferPointer

    var hasLowerBound: Bool { unsafe lowerBound.count > 0 }
}

/// A sorted run as readers see it: files with ascending keys, no key in two of them. Valid while its set is.
@safe
struct RunSlices {
    let start: UnsafePointer<RunSlice>
    let count: Int

    @inline(__always)
    subscript(index: Int) -> RunSlice {
        @inline(__always) unsafeAddress { unsafe start + index }
    }

    /// The first file whose highest key is not below `key`; `count` if there is none.
    func slice(of key: UnsafeRawBufferPointer) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if unsafe compareBytes(self[middle].highestKey, key) < 0 { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// A place among all entries of a run, every version of every key.
@safe
struct RunPosition {
    private let slices: RunSlices
    private(set) var slice = 0
    private var blockNumber = 0
    private var block: RunBlock?
    private var index = 0
    /// The count of faults when the block was verified.
    private var faults: UInt64 = 0
    private let cold: ColdReads

    init(_ slices: RunSlices, _ cold: ColdReads = .wait) {
        self.slices = slices
        self.cold = cold
    }

    var isAtEntry: Bool { block != nil }

    /// The entry at the position.
    @inline(__always)
    var entry: Block.Entry { unsafe block.unsafelyUnwrapped.entry(index) }

    /// The version of an entry at the position.
    @inline(__always)
    func version(_ entry: Block.Entry) -> UInt64 { unsafe slices[slice].part.versionMin &+ entry.version }

    /// The first key of the block, with which all of its keys share a prefix.
    @inline(__always)
    var firstKey: UnsafeRawBufferPointer { unsafe block.unsafelyUnwrapped.firstKey }

    @inline(__always)
    func hasKey(_ key: UnsafeRawBufferPointer) -> Bool { unsafe block.unsafelyUnwrapped.hasKey(key, at: index) }

    @inline(__always)
    var blockStart: UnsafeRawPointer { unsafe block.unsafelyUnwrapped.start }
}

// MARK: - Faults

extension RunPosition {
    /// Throws if what was read of the block since the position came to it, or what of it lies in `value`, may have been
    /// zeros in place of a page that cannot be read.
    @inline(__always)
    mutating func confirm(_ value: UnsafeRawBufferPointer?) throws(StorageError) {
        unsafe try slices[slice].part.warmApart(value, cold)
        unsafe touch(value)
        if MapFaults.count != faults {
            try verifyAgain()
            unsafe try slices[slice].part.warmApart(value, cold)
        }
    }

    /// If the block is right now, it was before: zeros stay.
    private mutating func verifyAgain() throws(StorageError) {
        repeat {
            faults = MapFaults.settledCount
            if isAtEntry { block = try slices[slice].part.block(blockNumber, cold) }
        } while MapFaults.count != faults
    }

    /// Searches until no page has become zeros meanwhile.
    private mutating func confirming(
        _ search: (inout RunPosition) throws(StorageError) -> Void
    ) throws(StorageError) {
        repeat {
            faults = MapFaults.settledCount
            try search(&self)
        } while MapFaults.count != faults
    }
}

/// Reads a byte of each page of a value, so that a page that cannot be read is noticed now.
@inline(__always)
func touch(_ value: UnsafeRawBufferPointer?) {
    guard let value = unsafe value, let start = value.baseAddress, value.count > 0 else { return }
    unsafe touch_for_reading(start + (value.count &- 1))
    var offset = 0
    while offset < value.count {
        unsafe touch_for_reading(start + offset)
        offset &+= 4096
    }
}

// MARK: - Moving

extension RunPosition {
    /// Asks the kernel to read the blocks that follow, once in a while: maps are read in no order otherwise.
    func readAhead() {
        if blockNumber % RunPart.readAheadBlocks == 0 { slices[slice].part.readAhead(from: blockNumber) }
    }

    /// Goes to the first entry of all.
    mutating func moveToStart() throws(StorageError) {
        try confirming { position throws(StorageError) in try position.enter(slice: 0) }
    }

    /// Goes to the first entry of a file that the run uses, or to the end if there is no such file.
    private mutating func enter(slice number: Int) throws(StorageError) {
        slice = number
        guard number < slices.count else {
            block = nil
            return
        }
        if slices[number].hasLowerBound {
            unsafe try enter(slices[number].lowerBound, version: .max)
        } else {
            blockNumber = 0
            block = try slices[number].part.block(0, cold)
            index = 0
        }
    }

    /// Goes to the first entry of the current file that is not before (key, version). If there is none, goes to the
    /// next file.
    private mutating func enter(_ key: UnsafeRawBufferPointer, version: UInt64) throws(StorageError) {
        let part = slices[slice].part
        // If all entries are newer, what is sought begins after those of the key.
        let relative = part.relative(version)
        blockNumber = unsafe try part.findBlock(key, version: relative ?? 0, cold)
        let found = try part.block(blockNumber, cold)
        block = found
        index = unsafe found.search(key, version: relative ?? 0)
        if index == found.count {
            index -= 1
            try next()
        }
        if relative == nil {
            while isAtEntry, unsafe hasKey(key) { try next() }
        }
    }

    /// Goes to the first entry that is not before (key, version).
    mutating func seek(_ key: UnsafeRawBufferPointer, version: UInt64) throws(StorageError) {
        try confirming { position throws(StorageError) in unsafe try position.seekOnce(key, version: version) }
    }

    private mutating func seekOnce(_ key: UnsafeRawBufferPointer, version: UInt64) throws(StorageError) {
        let number = unsafe slices.slice(of: key)
        guard number < slices.count else {
            slice = number
            block = nil
            return
        }
        if slices[number].hasLowerBound, unsafe compareBytes(key, slices[number].lowerBound) < 0 {
            return try enter(slice: number)
        }
        slice = number
        unsafe try enter(key, version: version)
    }

    /// Goes to the last entry before the first one of `key`, or to the last of all.
    mutating func seekBefore(_ key: UnsafeRawBufferPointer?) throws(StorageError) {
        try confirming { position throws(StorageError) in
            if let key = unsafe key {
                unsafe try position.seekOnce(key, version: .max)
                if position.isAtEntry { return try position.previous() }
            }
            try position.enterBackward(slice: position.slices.count - 1)
        }
    }

    private mutating func enterBackward(slice number: Int) throws(StorageError) {
        guard number >= 0 else {
            block = nil
            return
        }
        slice = number
        let part = slices[number].part
        blockNumber = part.dataBlockCount - 1
        let last = try part.block(blockNumber, cold)
        block = last
        index = last.count - 1
        try leaveIfBelowBound()
    }

    /// Goes to the next entry; the position must be at one.
    @inline(__always)
    mutating func next() throws(StorageError) {
        index &+= 1
        if unsafe index >= block.unsafelyUnwrapped.count { try nextBlock() }
    }

    private mutating func nextBlock() throws(StorageError) {
        if MapFaults.count != faults { try verifyAgain() }
        index = 0
        blockNumber += 1
        let part = slices[slice].part
        if blockNumber < part.dataBlockCount {
            block = try nearbyBlock(part)
        } else {
            try enter(slice: slice + 1)
        }
    }

    /// The block at the position, to which a walk has come: if it must be waited for, those around it are read as well.
    private func nearbyBlock(_ part: RunPart) throws(StorageError) -> RunBlock {
        do throws(StorageError) {
            return try part.block(blockNumber, cold)
        } catch {
            if error.code == .pending { part.noteAround(blockNumber, cold) }
            throw error
        }
    }

    /// Goes to the entry before; the position must be at one.
    @inline(__always)
    mutating func previous() throws(StorageError) {
        if index > 0 {
            index &-= 1
            if slices[slice].hasLowerBound { try leaveIfBelowBound() }
        } else {
            try previousBlock()
        }
    }

    private mutating func previousBlock() throws(StorageError) {
        if MapFaults.count != faults { try verifyAgain() }
        guard blockNumber > 0 else { return try enterBackward(slice: slice - 1) }
        blockNumber -= 1
        let before = try nearbyBlock(slices[slice].part)
        block = before
        index = before.count - 1
        try leaveIfBelowBound()
    }

    /// Goes to the file before if the entry is below what the run uses of this one.
    private mutating func leaveIfBelowBound() throws(StorageError) {
        guard slices[slice].hasLowerBound, let block else { return }
        let entry = unsafe block.entry(index)
        let bound = unsafe slices[slice].lowerBound
        let prefix = unsafe UnsafeRawBufferPointer(rebasing: block.firstKey.prefix(entry.shared))
        let head = unsafe UnsafeRawBufferPointer(rebasing: bound.prefix(entry.shared))
        var order = unsafe compareBytes(prefix, head)
        if order == 0 {
            unsafe order = compareBytes(entry.suffix, UnsafeRawBufferPointer(rebasing: bound[head.count...]))
        }
        if order < 0 {
            if MapFaults.count != faults { try verifyAgain() }
            try enterBackward(slice: slice - 1)
        }
    }
}
