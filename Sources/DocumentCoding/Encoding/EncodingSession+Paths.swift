// The position of an encoding in the document: coding paths for errors and strategies, field paths for transforms. Both
// are built only when they are needed.

/// A key made by the coders: an index of an array, or a name of which the Swift key is not known.
struct PathKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = "\(intValue)"
        self.intValue = intValue
    }

    init(index: Int) {
        stringValue = "Index \(index)"
        intValue = index
    }

    static let superKey = PathKey(stringValue: "super")
}

extension EncodingSession {
    /// The keys that lead to the value of a frame; by default to the value being encoded now.
    func codingPath(toFrame frame: Int? = nil) -> [any CodingKey] {
        var path: [any CodingKey] = []
        if let parent = unsafe state.pointee.parent {
            path = parent.session.codingPath(toFrame: parent.frame)
            path.append(parent.codingKey)
        }
        let end = unsafe frame ?? state.pointee.top + 1
        for index in 0..<max(0, end) {
            if let key = currentKey(ofFrame: index) { path.append(key) }
        }
        return path
    }

    /// The keys that lead to the value of a handle's frame; none after the value has been encoded.
    func codingPath(toFrame frame: Int, _ serial: UInt32) -> [any CodingKey] {
        isOpen(frame, serial) ? codingPath(toFrame: frame) : []
    }

    /// The key of the entry or element that the frame is at; nil before the first and for single values.
    private func currentKey(ofFrame index: Int) -> (any CodingKey)? {
        let frame = unsafe state.pointee.frames[index]
        switch frame.kind {
        case .undecided, .single, .omitted: return nil
        case .array: return PathKey(index: frame.count)
        case .map:
            if unsafe index < state.pointee.swiftKeys.count, let key = unsafe state.pointee.swiftKeys[index] {
                return key
            }
            if let table = unsafe frame.keyTable { return unsafe table.pointee.keys[frame.keyIndex] }
            return unsafe PathKey(stringValue: String(decoding: name(at: frame.partStart), as: UTF8.self))
        }
    }

    /// The names of the fields that lead to the value being encoded now.
    func fieldPath() -> [String] {
        var path: [String] = []
        if let parent = unsafe state.pointee.parent {
            path = parent.session.fieldPath(toFrame: parent.frame)
            path.append(parent.name)
        }
        return unsafe path + namesOfOwnFrames(before: state.pointee.top + 1)
    }

    private func fieldPath(toFrame frame: Int) -> [String] {
        var path: [String] = []
        if let parent = unsafe state.pointee.parent {
            path = parent.session.fieldPath(toFrame: parent.frame)
            path.append(parent.name)
        }
        return path + namesOfOwnFrames(before: frame)
    }

    private func namesOfOwnFrames(before end: Int) -> [String] {
        var names: [String] = []
        for index in 0..<end where unsafe state.pointee.frames[index].kind == .map {
            let start = unsafe state.pointee.frames[index].partStart
            names.append(unsafe String(decoding: name(at: start), as: UTF8.self))
        }
        return names
    }

    /// Whether a value written now would lie inside an array, at whatever depth.
    var isInsideArray: Bool {
        for index in 0..<(top + 1) where unsafe state.pointee.frames[index].kind == .array { return true }
        guard let parent = unsafe state.pointee.parent else { return false }
        return parent.session.isInsideArray(through: parent.frame)
    }

    private func isInsideArray(through frame: Int) -> Bool {
        for index in 0...frame where unsafe state.pointee.frames[index].kind == .array { return true }
        guard let parent = unsafe state.pointee.parent else { return false }
        return parent.session.isInsideArray(through: parent.frame)
    }

    /// Whether this session is of a nested container that is directly an element of an array.
    var isElementOfParentArray: Bool {
        guard let parent = unsafe state.pointee.parent else { return false }
        return unsafe parent.session.state.pointee.frames[parent.frame].kind == .array
    }

    /// An error about the value being encoded now, or the one of a frame.
    func invalidValue(_ value: Any, _ description: String, frame: Int? = nil) -> EncodingError {
        .invalidValue(value, .init(codingPath: codingPath(toFrame: frame), debugDescription: description))
    }

    /// Names that the server refuses: empty, over 1,500 bytes, or of the form `__.+__`.
    func checkFieldName(_ name: String) throws {
        if unsafe state.pointee.isTree { return }
        let utf8 = name.utf8
        if utf8.isEmpty { throw invalidValue(name, "Document fields must not be empty.", frame: top) }
        if utf8.count > 1500 { throw invalidValue(name, "A field name may have at most 1500 bytes.", frame: top) }
        if utf8.count > 4, utf8.starts(with: "__".utf8), utf8.suffix(2).elementsEqual("__".utf8) {
            throw invalidValue(
                name, "Document fields cannot begin and end with \"__\" (found field \(name)).", frame: top)
        }
    }
}
