// Decoding of arrays, optionals and string-keyed dictionaries. Their own `init(from:)` would use an existential
// container and look up the element type for each element.

extension Array: DirectlyDecodable where Element: Decodable {
    static var dropsNullEntries: Bool { false }

    static func decode<T>(_ type: T.Type, _ value: WireValue, _ session: DecodingSession, parent: Int) throws -> T {
        let record = unsafe session.typeRecord(Element.self)
        let (body, count) = try session.array(Self.self, value, parent: parent)
        let frame = try unsafe session.pushFrame(.array, parent: parent, firstEntry: session.state.pointee.entryCount)
        defer { session.closeFrames(downTo: frame) }
        var array: [Element] = []
        array.reserveCapacity(count)
        var cursor = session.cursor(body)
        while true {
            let element: WireValue?
            do throws(MalformedBytes) {
                element = try cursor.nextElement()
            } catch {
                throw session.malformed(error, parent: frame)
            }
            guard let element else { break }
            unsafe session.state.pointee.frames[frame].index = array.count
            array.append(try unsafe session.decode(Element.self, element, record, parent: frame))
        }
        return unsafe reinterpret(array, as: type)
    }
}

extension Optional: DirectlyDecodable where Wrapped: Decodable {
    static var dropsNullEntries: Bool { false }

    static func decode<T>(_ type: T.Type, _ value: WireValue, _ session: DecodingSession, parent: Int) throws -> T {
        let isNull = parent >= 0 && session.isNull(value)
        let result: Self = isNull ? nil : try session.decode(Wrapped.self, value, parent: parent)
        return unsafe reinterpret(result, as: type)
    }
}

extension Dictionary: DirectlyDecodable where Key: Decodable, Value: Decodable {
    static var dropsNullEntries: Bool { Key.self == String.self }

    static func decode<T>(_ type: T.Type, _ value: WireValue, _ session: DecodingSession, parent: Int) throws -> T {
        // Other keys than strings are decoded as the standard library has it.
        guard Key.self == String.self else {
            return unsafe reinterpret(try session.decodable(Self.self, value, parent: parent), as: type)
        }
        let record = unsafe session.typeRecord(Value.self)
        let dropsNull = unsafe record.pointee.dropsNullEntries
        let body = try session.map(Self.self, value, parent: parent)
        let frame = try session.openMap(body.range, entryTag: body.entryTag, parent: parent)
        defer { session.closeFrames(downTo: frame) }
        var dictionary: [String: Value] = [:]
        let (first, end) = unsafe (
            session.state.pointee.frames[frame].firstEntry, session.state.pointee.frames[frame].entryEnd
        )
        dictionary.reserveCapacity(end - first)
        for index in first..<end {
            let element = session.value(ofEntry: index)
            if dropsNull, session.isNull(element) { continue }
            unsafe session.state.pointee.frames[frame].index = index
            dictionary[session.name(ofEntry: index)] = try unsafe session.decode(
                Value.self, element, record, parent: frame)
        }
        return unsafe reinterpret(dictionary, as: type)
    }
}

extension DecodingSession {
    /// The body of a value that is an array, and how many elements it has.
    func array(_ type: Any.Type, _ value: WireValue, parent: Int) throws -> (body: WireValue, count: Int) {
        guard parent >= 0, case .array(let body) = try kind(of: value, parent: parent) else {
            throw notA(type, value, parent: parent, container: "unkeyed")
        }
        return (body, countElements(body))
    }

    /// How many elements an array has, up to malformed bytes.
    func countElements(_ body: WireValue) -> Int {
        var cursor = cursor(body)
        var count = 0
        while (try? cursor.nextElement()) != nil { count += 1 }
        return count
    }

    /// The entries of a value that is a map, or of the document.
    @inline(__always)
    func map(_ type: Any.Type, _ value: WireValue, parent: Int) throws -> (range: WireValue, entryTag: UInt8) {
        if parent < 0 { return (value, ValueWireTag.documentField) }
        guard case .map(let body) = try kind(of: value, parent: parent) else {
            throw notA(type, value, parent: parent, container: "keyed")
        }
        return (body, ValueWireTag.mapEntry)
    }

    @inline(never)
    private func notA(_ type: Any.Type, _ value: WireValue, parent: Int, container: String) -> DecodingError {
        if parent < 0 {
            return .typeMismatch(
                type,
                .init(codingPath: [], debugDescription: "Expected to decode \(type) but found a dictionary instead."))
        }
        if isNull(value) {
            return .valueNotFound(
                type,
                .init(
                    codingPath: codingPath(inFrame: parent),
                    debugDescription: "Cannot get \(container) decoding container -- found null value instead."))
        }
        return mismatch(type, value, parent: parent)
    }
}
