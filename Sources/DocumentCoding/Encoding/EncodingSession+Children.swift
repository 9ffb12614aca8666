// Nested containers and super encoders: separate sessions, collected when the value to which they belong ends.

import Basics
import Glibc

/// The session of a nested container.
struct ChildSession {
    let session: EncodingSession
    /// The frame of the parent that it belongs to.
    let frame: Int
    /// Offset in the parent's bytes at which an element belongs.
    let offset: Int
}

/// How a child session finds its place.
struct ParentLink {
    let session: EncodingSession
    let frame: Int
    /// The field's name; empty for elements.
    let name: String
    let codingKey: any CodingKey
}

extension EncodingSession {
    /// The encoder of the nested value under a key. Asking again for the same key gives the same value.
    func entryChild(of frame: Int, key: any CodingKey) -> WireEncoder {
        let name = unsafe state.pointee.usesDefaultKeys ? key.stringValue : convertedName(of: key, frame: frame)
        for known in unsafe state.pointee.children where known.frame == frame {
            if let link = unsafe known.session.state.pointee.parent, link.name.hasSameUTF8(as: name) {
                return unsafe WireEncoder(
                    session: known.session, frame: 0, serial: known.session.state.pointee.frames[0].serial)
            }
        }
        return addChild(ParentLink(session: self, frame: frame, name: name, codingKey: key), offset: 0)
    }

    /// The encoder of a nested value that is the next element of an array.
    func elementChild(of frame: Int) -> WireEncoder {
        let index = unsafe state.pointee.frames[frame].count
        // While an element is being written the nested value goes before it.
        let offset = unsafe state.pointee.top == frame ? state.pointee.count : state.pointee.frames[frame].partStart
        unsafe state.pointee.frames[frame].count += 1
        return addChild(
            ParentLink(session: self, frame: frame, name: "", codingKey: PathKey(index: index)), offset: offset)
    }

    private func addChild(_ link: ParentLink, offset: Int) -> WireEncoder {
        let child = unsafe EncodingSession.take(from: state.pointee.tables)
        child.adoptOptions(of: self)
        unsafe child.state.pointee.parent = link
        unsafe state.pointee.children.append(ChildSession(session: child, frame: link.frame, offset: offset))
        unsafe state.pointee.frames[link.frame].hasChildren = true
        guard let frame = try? child.pushFrame() else {
            preconditionFailure("a session without frames has room for one")
        }
        return unsafe WireEncoder(session: child, frame: frame, serial: child.state.pointee.lastSerial)
    }

    private func adoptOptions(of parent: EncodingSession) {
        unsafe state.pointee.usesDefaultKeys = unsafe parent.state.pointee.usesDefaultKeys
        unsafe state.pointee.writesTimestamps = unsafe parent.state.pointee.writesTimestamps
        unsafe state.pointee.isTree = unsafe parent.state.pointee.isTree
        unsafe state.pointee.strategies = unsafe parent.state.pointee.strategies
        unsafe state.pointee.database = unsafe parent.state.pointee.database
    }

    /// Writes the nested values of a frame that ends into its map or array.
    @inline(never)
    func gatherChildren(of frame: Int) throws {
        let children = unsafe state.pointee.children.filter { $0.frame == frame }
        unsafe state.pointee.children.removeAll { $0.frame == frame }
        unsafe state.pointee.frames[frame].hasChildren = false
        defer { for child in children { child.session.recycle() } }
        var isPresent: [Bool] = []
        for child in children { isPresent.append(try child.session.closeFrame(0)) }
        if unsafe state.pointee.frames[frame].kind == .array {
            splice(children, into: frame)
            return
        }
        for (child, isPresent) in zip(children, isPresent) where isPresent {
            guard let link = unsafe child.session.state.pointee.parent else { continue }
            let entry = try openEntry(named: link.name)
            unsafe child.session.withBytes { bytes in
                reserve(bytes.count)
                unsafe put(bytes: bytes)
            }
            closeEntry(entry)
        }
    }

    /// Inserts nested elements among those that were written directly.
    private func splice(_ children: [ChildSession], into frame: Int) {
        let bodyStart = unsafe state.pointee.frames[frame].bodyStart
        let body = unsafe [UInt8](
            UnsafeRawBufferPointer(start: state.pointee.base + bodyStart, count: count - bodyStart))
        unsafe state.pointee.count = bodyStart
        var taken = 0
        for child in children {
            let upTo = child.offset - bodyStart
            append(body, taken..<upTo)
            taken = upTo
            reserve(2)
            put(byte: ValueWireTag.arrayElement)
            put(byte: 0)
            let start = count
            unsafe child.session.withBytes { bytes in
                reserve(bytes.count)
                unsafe put(bytes: bytes)
            }
            fillLength(at: start - 1)
        }
        append(body, taken..<body.count)
    }

    private func append(_ bytes: [UInt8], _ range: Range<Int>) {
        reserve(range.count)
        unsafe bytes.withUnsafeBytes { unsafe put(bytes: UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    /// Gives up the nested values of a frame that failed.
    func abandonChildren(of frame: Int) {
        for child in unsafe state.pointee.children where child.frame == frame { child.session.recycle() }
        unsafe state.pointee.children.removeAll { $0.frame == frame }
    }

    func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
        unsafe body(UnsafeRawBufferPointer(start: state.pointee.base, count: state.pointee.count))
    }
}
