// Decoding of arrays, optionals and string-keyed dictionaries. Their own `init(from:)` would use an existential
// container and look up the element type for each element.

extension Array: DirectlyDecodable where Element: Decodable {
    static var dropsNullEntries: Bool { false }

    static func decode<T>(_ type: T.Type, _ value: ValueRange, _ session: DecodingSession, parent: Int) throws -> T {
        let record = unsafe session.typeRecord(Element.self)
        guard let body = try session.array(value, parent: parent) else {
            throw session.notAContainer(Self.self, value, parent: parent, "unkeyed")
        }
        let count = try session.elementCount(body, parent: parent)
        let frame = try unsafe session.pushFrame(.array, parent: parent, firstEntry: session.state.pointee.entryCount)
        defer { session.closeFrames(downTo: frame) }
        // The elements are made where the array has them.
        let array = try unsafe [Element](unsafeUninitializedCapacity: count) { elements, decoded in
            var cursor = session.cursor(body)
            while decoded < count, let element = try? cursor.nextElement() {
                unsafe session.state.pointee.frames[frame].index = decoded
                try unsafe elements.initializeElement(
                    at: decoded, to: session.decode(Element.self, element, record, parent: frame))
                decoded &+= 1
            }
        }
        return unsafe reinterpret(array, as: type)
    }
}

extension Optional: DirectlyDecodable where Wrapped: Decodable {
    static var dropsNullEntries: Bool { false }

    static func decode<T>(_ type: T.Type, _ value: ValueRange, _ session: DecodingSession, parent: Int) throws -> T {
        let isNull = parent >= 0 && session.isNull(value)
        let result: Self = isNull ? nil : try session.decode(Wrapped.self, value, parent: parent)
        return unsafe reinterpret(result, as: type)
    }
}

extension Dictionary: DirectlyDecodable where Key: Decodable, Value: Decodable {
    static var dropsNullEntries: Bool { Key.self == String.self }

    static func decode<T>(_ type: T.Type, _ value: ValueRange, _ session: DecodingSession, parent: Int) throws -> T {
        // Other keys than strings are decoded as the standard library has it.
        guard Key.self == String.self else {
            return unsafe reinterpret(try session.decodable(Self.self, value, parent: parent), as: type)
        }
        let record = unsafe session.typeRecord(Value.self)
        let dropsNull = unsafe record.pointee.dropsNullEntries
        guard let body = try session.map(value, parent: parent) else {
            throw session.notAContainer(Self.self, value, parent: parent, "keyed")
        }
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
    /// The body of a value that is an array; nil for other values.
    @inline(__always)
    func array(_ value: ValueRange, parent: Int) throws -> ValueRange? {
        if parent < 0 { return nil }
        if let body = plainPayload(value, ValueWireTag.array) { return body }
        if case .array(let body) = try kind(of: value, parent: parent) { return body }
        return nil
    }

    /// How many elements an array has.
    func elementCount(_ body: ValueRange, parent: Int) throws -> Int {
        var cursor = cursor(body)
        var count = 0
        do throws(MalformedBytes) {
            while try cursor.nextElement() != nil { count &+= 1 }
        } catch {
            throw malformed(error, parent: parent)
        }
        return count
    }

    /// The entries of a value that is a map, or of the document; nil for other values.
    @inline(__always)
    func map(_ value: ValueRange, parent: Int) throws -> (range: ValueRange, entryTag: UInt8)? {
        if parent < 0 { return (value, ValueWireTag.documentField) }
        if let body = plainPayload(value, ValueWireTag.map) { return (body, ValueWireTag.mapEntry) }
        if case .map(let body) = try kind(of: value, parent: parent) { return (body, ValueWireTag.mapEntry) }
        return nil
    }

    /// - Parameter container: the kind of container in the words of the SDK.
    @inline(never)
    func notAContainer(_ type: Any.Type, _ value: ValueRange, parent: Int, _ container: String) -> DecodingError {
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
