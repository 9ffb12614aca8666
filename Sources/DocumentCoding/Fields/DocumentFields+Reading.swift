// Document bytes as `[String: Any]`: what `DocumentSnapshot.data()` gives.

import Foundation

/// Document bytes that cannot be read.
package struct MalformedDocument: Error, Equatable, CustomStringConvertible {
    /// Where in the bytes.
    package let offset: Int
    package let reason: String

    package var description: String { "The document's bytes are malformed at offset \(offset): \(reason)." }
}

extension DocumentFields {
    /// The fields of a document. Numbers and booleans are `NSNumber`, times `Timestamp`, bytes `Data`, null `NSNull`.
    ///
    /// - Parameters:
    ///   - fields: `fields` entries of Document, in any valid form.
    ///   - owner: the owner of the references that are read.
    package static func dictionary(
        from fields: RawSpan, owner: AnyObject?
    ) throws(MalformedDocument) -> [String: Any] {
        try read(fields) { cursor throws(MalformedDocument) in
            try AnyReader(owner: owner, objects: []).dictionary(cursor, ValueWireTag.documentField, depth: 0)
        }
    }

    /// The value of one field, or nil if there is none; `path` is literal names.
    package static func value(
        at path: FieldPath, in fields: RawSpan, owner: AnyObject?
    ) throws(MalformedDocument) -> Any? {
        try read(fields) { cursor throws(MalformedDocument) in
            guard let value = cursor.find(path.segments[...], ValueWireTag.documentField) else { return nil }
            return try AnyReader(owner: owner, objects: []).value(
                unsafe WireCursor(cursor.base, value.start, value.end), depth: 0)
        }
    }

    /// A Value message as `Any`: for results of aggregations and transforms.
    package static func value(from bytes: RawSpan, owner: AnyObject?) throws(MalformedDocument) -> Any {
        try read(bytes) { cursor throws(MalformedDocument) in
            try AnyReader(owner: owner, objects: []).value(cursor, depth: 0)
        }
    }

    static func read<R>(
        _ bytes: RawSpan, _ body: (WireCursor) throws(MalformedDocument) -> R
    ) throws(MalformedDocument) -> R {
        try unsafe bytes.withUnsafeBytes { buffer throws(MalformedDocument) in
            var none: UInt8 = 0
            // An empty buffer may have no address; none is read then.
            guard let base = buffer.baseAddress else {
                return try unsafe withUnsafePointer(to: &none) { pointer throws(MalformedDocument) in
                    try body(unsafe WireCursor(UnsafeRawPointer(pointer), 0, 0))
                }
            }
            return try body(unsafe WireCursor(base, 0, buffer.count))
        }
    }
}

/// Reads values into the SDK's untyped form.
struct AnyReader {
    let owner: AnyObject?
    /// The objects that were passed through, if the bytes were written for a `[String: Any]`.
    let objects: [AnyObject]

    private static let depthMax = 100

    /// The entries of a map or document.
    func dictionary(_ entries: WireCursor, _ entryTag: UInt8, depth: Int) throws(MalformedDocument) -> [String: Any] {
        if depth > Self.depthMax { throw MalformedDocument(offset: entries.at, reason: "nested too deep") }
        var entries = entries
        var dictionary: [String: Any] = [:]
        while true {
            let entry: (key: ValueRange, value: ValueRange)?
            do throws(MalformedBytes) {
                entry = try entries.nextEntry(entryTag)
            } catch {
                throw MalformedDocument(offset: error.offset, reason: "not a map")
            }
            guard let (key, contents) = entry else { return dictionary }
            let value = unsafe WireCursor(entries.base, contents.start, contents.end)
            dictionary[entries.text(key)] = try self.value(value, depth: depth + 1)
        }
    }

    /// The contents of a Value message.
    func value(_ contents: WireCursor, depth: Int) throws(MalformedDocument) -> Any {
        if depth > Self.depthMax { throw MalformedDocument(offset: contents.at, reason: "nested too deep") }
        var contents = contents
        let kind: WireKind
        do throws(MalformedBytes) {
            kind = try contents.value()
        } catch {
            throw MalformedDocument(offset: error.offset, reason: "not a value")
        }
        func cursor(_ range: ValueRange) -> WireCursor { unsafe WireCursor(contents.base, range.start, range.end) }
        switch kind {
        case .null: return NSNull()
        case .boolean(let boolean): return NSNumber(value: boolean)
        case .integer(let integer): return NSNumber(value: integer)
        case .double(let double): return NSNumber(value: double)
        case .string(let range): return contents.text(range)
        case .bytes(let range): return unsafe Data(contents.bytes(range))
        case .timestamp(let range):
            var message = cursor(range)
            if let (seconds, nanoseconds) = try? message.timestamp(),
                let timestamp = Timestamp(checkedSeconds: seconds, nanoseconds: nanoseconds)
            {
                return timestamp
            }
            throw MalformedDocument(offset: range.start, reason: "a timestamp out of range")
        case .geoPoint(let range):
            var message = cursor(range)
            if let (latitude, longitude) = try? message.geoPoint(),
                let point = GeoPoint(checkedLatitude: latitude, longitude: longitude)
            {
                return point
            }
            throw MalformedDocument(offset: range.start, reason: "a geo point out of range")
        case .reference(let range):
            let name = contents.text(range)
            if let reference = DocumentReference(name: name, owner: owner) { return reference }
            throw MalformedDocument(offset: range.start, reason: "\"\(name)\" is not the name of a document")
        case .array(let range): return try array(cursor(range), depth: depth)
        case .map(let range):
            if let vector = try? cursor(range).vector() { return vector }
            return try dictionary(cursor(range), ValueWireTag.mapEntry, depth: depth)
        case .object(let index):
            guard index < objects.count else { throw MalformedDocument(offset: contents.at, reason: "not a value") }
            return objects[index]
        }
    }

    private func array(_ elements: WireCursor, depth: Int) throws(MalformedDocument) -> [Any] {
        var elements = elements
        var array: [Any] = []
        while true {
            let element: ValueRange?
            do throws(MalformedBytes) {
                element = try elements.nextElement()
            } catch {
                throw MalformedDocument(offset: error.offset, reason: "not an array")
            }
            guard let element else { return array }
            let contents = unsafe WireCursor(elements.base, element.start, element.end)
            array.append(try value(contents, depth: depth + 1))
        }
    }
}
