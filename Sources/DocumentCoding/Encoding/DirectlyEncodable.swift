// Encoding of arrays, optionals and string-keyed dictionaries. Their own `encode(to:)` would use an existential
// container and look up the element type for each element.

extension Array: DirectlyEncodable where Element: Encodable {
    static func encode<T>(_ value: T, into session: EncodingSession) throws -> Bool {
        let array = unsafe reinterpret(value, as: Self.self)
        let record = unsafe session.typeRecord(Element.self)
        return try session.withFrame { frame in
            session.beginArray(frame)
            for element in array {
                let start = session.openElement()
                if try unsafe !session.put(element, record) {
                    throw session.invalidValue(element, "A sentinel cannot be an element of an array.")
                }
                session.closeElement(start)
            }
        }
    }
}

extension Optional: DirectlyEncodable where Wrapped: Encodable {
    static func encode<T>(_ value: T, into session: EncodingSession) throws -> Bool {
        guard let value = unsafe reinterpret(value, as: Self.self) else {
            session.putNull()
            return true
        }
        return try unsafe session.put(value, session.typeRecord(Wrapped.self))
    }
}

extension Dictionary: DirectlyEncodable where Key: Encodable, Value: Encodable {
    static func encode<T>(_ value: T, into session: EncodingSession) throws -> Bool {
        let dictionary = unsafe reinterpret(value, as: Self.self)
        // Other keys than strings are encoded as the standard library has it: numbers as a map, the rest as an array.
        guard Key.self == String.self else { return try session.putEncodable(dictionary) }
        let named = unsafe unsafeBitCast(dictionary, to: [String: Value].self)
        let record = unsafe session.typeRecord(Value.self)
        return try session.withFrame { frame in
            session.beginMap(frame)
            for (name, value) in named {
                let entry = try session.openEntry(named: name)
                session.noteSwiftKey(nil)
                if try unsafe session.put(value, record) {
                    session.closeEntry(entry)
                } else {
                    session.dropPart(from: entry.start)
                }
            }
        }
    }
}
