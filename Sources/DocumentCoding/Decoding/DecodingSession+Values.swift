// Values of every type from a Value message. The parameter `parent` is the frame whose current key or index leads to
// the value; errors take their path from it.

import Basics
import Foundation

extension DecodingSession {
    // MARK: Errors

    @inline(never)
    func mismatch(_ type: Any.Type, _ value: ValueRange, parent: Int) -> DecodingError {
        let path = codingPath(inFrame: parent)
        guard let kind = try? kind(of: value, parent: parent) else {
            return malformed(MalformedBytes(offset: value.start), parent: parent)
        }
        if case .null = kind {
            return .valueNotFound(
                type, .init(codingPath: path, debugDescription: "Expected \(type) value but found null instead."))
        }
        return .typeMismatch(
            type,
            .init(
                codingPath: path, debugDescription: "Expected to decode \(type) but found \(kind.description) instead.")
        )
    }

    @inline(never)
    func corrupted(_ description: String, parent: Int) -> DecodingError {
        .dataCorrupted(.init(codingPath: codingPath(inFrame: parent), debugDescription: description))
    }

    /// What a value holds; the document is a map.
    @inline(__always)
    func kind(of value: ValueRange, parent: Int) throws -> WireKind {
        if parent < 0 { return .map(value) }
        var cursor = cursor(value)
        do throws(MalformedBytes) {
            let kind = try cursor.value()
            if case .object(let index) = kind, unsafe !state.pointee.isTree || index >= state.pointee.objects.count {
                return .null
            }
            return kind
        } catch {
            throw malformed(error, parent: parent)
        }
    }

    /// Whether a value is null, or nothing.
    @inline(__always)
    func isNull(_ value: ValueRange) -> Bool {
        var cursor = cursor(value)
        if case .null? = try? cursor.value() { return true }
        return false
    }

    /// The object passed through at a value, if it is one of that class.
    private func object<T: AnyObject>(_ type: T.Type, _ kind: WireKind) -> T? {
        guard case .object(let index) = kind else { return nil }
        return unsafe state.pointee.objects[index] as? T
    }

    // MARK: Scalars

    /// The payload of a value as encoders write it: nothing but the given tag, a length of one or two bytes, and the
    /// bytes; nil for every other value.
    @inline(__always)
    func plainPayload(_ value: ValueRange, _ tag: UInt8, _ tagEnd: UInt8? = nil) -> ValueRange? {
        let base = unsafe state.pointee.base
        var start = value.start &+ (tagEnd == nil ? 2 : 3)
        if start > value.end { return nil }
        if unsafe base.load(fromByteOffset: value.start, as: UInt8.self) != tag { return nil }
        if let tagEnd, unsafe base.load(fromByteOffset: value.start &+ 1, as: UInt8.self) != tagEnd { return nil }
        var count = unsafe Int(base.load(fromByteOffset: start &- 1, as: UInt8.self))
        if count >= 0x80 {
            if start == value.end { return nil }
            let second = unsafe Int(base.load(fromByteOffset: start, as: UInt8.self))
            if second >= 0x80 { return nil }
            count = count & 0x7f | second << 7
            start &+= 1
        }
        return start &+ count == value.end ? ValueRange(start: start, end: value.end) : nil
    }

    @inline(__always)
    func string(_ value: ValueRange, parent: Int) throws -> String {
        if parent >= 0, let payload = plainPayload(value, ValueWireTag.string, ValueWireTag.longTagEnd) {
            return text(payload)
        }
        guard case .string(let payload) = try kind(of: value, parent: parent) else {
            throw mismatch(String.self, value, parent: parent)
        }
        return text(payload)
    }

    /// The text of a range; bytes that are not UTF-8 are replaced.
    @inline(__always)
    private func text(_ range: ValueRange) -> String {
        let count = range.end &- range.start
        if count <= SmallString.countMax, unsafe range.start &+ 16 <= state.pointee.smallStringEnd,
            let small = unsafe SmallString.make(state.pointee.base + range.start, count)
        {
            return small
        }
        return cursor(range).text(range)
    }

    @inline(__always)
    func boolean(_ value: ValueRange, parent: Int) throws -> Bool {
        guard case .boolean(let boolean) = try kind(of: value, parent: parent) else {
            throw mismatch(Bool.self, value, parent: parent)
        }
        return boolean
    }

    /// An integer, or a double without a fraction, that fits the type.
    @inline(__always)
    func integer<I: FixedWidthInteger>(_ type: I.Type, _ value: ValueRange, parent: Int) throws -> I {
        let kind = try kind(of: value, parent: parent)
        if case .integer(let integer) = kind, let fitting = I(exactly: integer) { return fitting }
        return try unusualInteger(type, kind, value, parent: parent)
    }

    @inline(never)
    private func unusualInteger<I: FixedWidthInteger>(
        _ type: I.Type, _ kind: WireKind, _ value: ValueRange, parent: Int
    ) throws -> I {
        let number: String
        switch kind {
        case .integer(let integer): number = "\(integer)"
        case .double(let double):
            if let fitting = I(exactly: double) { return fitting }
            number = "\(double)"
        case .object:
            guard let object = object(NSNumber.self, kind) else { throw mismatch(type, value, parent: parent) }
            if let fitting = I(exactly: object.uint64Value) { return fitting }
            number = "\(object)"
        default: throw mismatch(type, value, parent: parent)
        }
        throw corrupted("Parsed number <\(number)> does not fit in \(type).", parent: parent)
    }

    @inline(__always)
    func double(_ value: ValueRange, parent: Int) throws -> Double {
        let kind = try kind(of: value, parent: parent)
        if case .double(let double) = kind { return double }
        return try unusualDouble(Double.self, kind, value, parent: parent)
    }

    func float(_ value: ValueRange, parent: Int) throws -> Float {
        let kind = try kind(of: value, parent: parent)
        if case .string = kind { return Float(try unusualDouble(Float.self, kind, value, parent: parent)) }
        let double: Double =
            if case .double(let double) = kind {
                double
            } else {
                try unusualDouble(Float.self, kind, value, parent: parent)
            }
        let float = Float(double)
        if !float.isFinite { throw corrupted("Parsed number <\(double)> does not fit in Float.", parent: parent) }
        return float
    }

    @inline(never)
    private func unusualDouble(_ type: Any.Type, _ kind: WireKind, _ value: ValueRange, parent: Int) throws -> Double {
        switch kind {
        case .integer(let integer): return Double(integer)
        case .string(let payload):
            let strategy = strategies?.values.float
            guard case .convertFromString(let positiveInfinity, let negativeInfinity, let nan)? = strategy else {
                break
            }
            switch cursor(value).text(payload) {
            case positiveInfinity: return .infinity
            case negativeInfinity: return -.infinity
            case nan: return .nan
            default: break
            }
        case .object:
            if let number = object(NSNumber.self, kind) { return number.doubleValue }
        default: break
        }
        throw mismatch(type, value, parent: parent)
    }

    /// The shortest decimal that the stored double is nearest to.
    ///
    /// `Decimal(0.07)` is 0.07000000000000001024, and `Decimal(.infinity)` ends the process.
    private func decimal(_ value: ValueRange, parent: Int) throws -> Decimal {
        if case .integer(let integer) = try kind(of: value, parent: parent) { return Decimal(integer) }
        let double = try double(value, parent: parent)
        if double.isNaN { return .nan }
        guard double.isFinite, let decimal = Decimal(string: "\(double)") else {
            throw corrupted("Parsed number <\(double)> does not fit in Decimal.", parent: parent)
        }
        return decimal
    }

    // MARK: Types of Foundation, as the strategies demand

    func date(_ value: ValueRange, parent: Int) throws -> Date {
        if unsafe state.pointee.readsTimestamps { return try storedDate(value, parent: parent) }
        switch strategies?.values.date ?? .timestamp {
        case .timestamp: return try storedDate(value, parent: parent)
        case .deferredToDate: return try decodable(Date.self, value, parent: parent)
        case .secondsSince1970: return Date(timeIntervalSince1970: try double(value, parent: parent))
        case .millisecondsSince1970: return Date(timeIntervalSince1970: try double(value, parent: parent) / 1000)
        case .iso8601:
            let text = try string(value, parent: parent)
            guard let date = try? Date(text, strategy: .iso8601) else {
                throw corrupted("Expected date string to be ISO8601-formatted.", parent: parent)
            }
            return date
        case .formatted(let formatter):
            guard let date = formatter.date(from: try string(value, parent: parent)) else {
                throw corrupted("Date string does not match format expected by formatter.", parent: parent)
            }
            return date
        case .custom(let decode): return try withDecoder(value, parent: parent) { try decode($0) }
        }
    }

    @inline(__always)
    private func storedDate(_ value: ValueRange, parent: Int) throws -> Date {
        if parent >= 0, let payload = plainPayload(value, ValueWireTag.timestamp) {
            let (seconds, nanoseconds) = try timestampParts(payload, parent: parent)
            return Date(timeIntervalSince1970: Double(seconds) + Double(nanoseconds) / 1e9)
        }
        if case .timestamp(let payload) = try kind(of: value, parent: parent) {
            let (seconds, nanoseconds) = try timestampParts(payload, parent: parent)
            return Date(timeIntervalSince1970: Double(seconds) + Double(nanoseconds) / 1e9)
        }
        return try timestamp(value, as: Date.self, parent: parent).dateValue()
    }

    func data(_ value: ValueRange, parent: Int) throws -> Data {
        switch strategies?.values.data ?? .blob {
        case .blob:
            switch try kind(of: value, parent: parent) {
            case .bytes(let payload): return unsafe Data(cursor(value).bytes(payload))
            case .string: return try base64(value, parent: parent)
            default: throw mismatch(Data.self, value, parent: parent)
            }
        case .deferredToData: return try decodable(Data.self, value, parent: parent)
        case .base64: return try base64(value, parent: parent)
        case .custom(let decode): return try withDecoder(value, parent: parent) { try decode($0) }
        }
    }

    private func base64(_ value: ValueRange, parent: Int) throws -> Data {
        guard let data = Data(base64Encoded: try string(value, parent: parent)) else {
            throw corrupted("Encountered Data is not valid Base64.", parent: parent)
        }
        return data
    }

    func url(_ value: ValueRange, parent: Int) throws -> URL {
        guard let url = URL(string: try string(value, parent: parent)) else {
            throw corrupted("Invalid URL string.", parent: parent)
        }
        return url
    }

    // MARK: Types of Firestore

    @inline(__always)
    private func timestampParts(_ payload: ValueRange, parent: Int) throws -> (seconds: Int64, nanoseconds: Int32) {
        var cursor = cursor(payload)
        do throws(MalformedBytes) { return try cursor.timestamp() } catch { throw malformed(error, parent: parent) }
    }

    func timestamp(_ value: ValueRange, as type: Any.Type = Timestamp.self, parent: Int) throws -> Timestamp {
        let kind = try kind(of: value, parent: parent)
        switch kind {
        case .timestamp(let payload):
            let (seconds, nanoseconds) = try timestampParts(payload, parent: parent)
            guard let timestamp = Timestamp(checkedSeconds: seconds, nanoseconds: nanoseconds) else {
                throw corrupted("Timestamp out of range.", parent: parent)
            }
            return timestamp
        case .map: return try decodable(Timestamp.self, value, parent: parent)
        default:
            if let timestamp = object(Timestamp.self, kind) { return timestamp }
            throw mismatch(type, value, parent: parent)
        }
    }

    func geoPoint(_ value: ValueRange, parent: Int) throws -> GeoPoint {
        let kind = try kind(of: value, parent: parent)
        switch kind {
        case .geoPoint(let payload):
            var cursor = cursor(payload)
            let parts: (latitude: Double, longitude: Double)
            do throws(MalformedBytes) { parts = try cursor.geoPoint() } catch { throw malformed(error, parent: parent) }
            guard let point = GeoPoint(checkedLatitude: parts.latitude, longitude: parts.longitude) else {
                throw corrupted("GeoPoint out of range.", parent: parent)
            }
            return point
        case .map: return try decodable(GeoPoint.self, value, parent: parent)
        default:
            if let point = object(GeoPoint.self, kind) { return point }
            throw mismatch(GeoPoint.self, value, parent: parent)
        }
    }

    func vector(_ value: ValueRange, parent: Int) throws -> VectorValue {
        let kind = try kind(of: value, parent: parent)
        if case .map(let body) = kind {
            if let vector = try? cursor(body).vector() { return vector }
            return try decodable(VectorValue.self, value, parent: parent)
        }
        if let vector = object(VectorValue.self, kind) { return vector }
        throw mismatch(VectorValue.self, value, parent: parent)
    }

    func reference(_ value: ValueRange, parent: Int) throws -> DocumentReference {
        let kind = try kind(of: value, parent: parent)
        if case .reference(let payload) = kind {
            let name = cursor(value).text(payload)
            guard let reference = DocumentReference(name: name, owner: document?.owner) else {
                throw corrupted("\"\(name)\" is not the name of a document.", parent: parent)
            }
            return reference
        }
        if let reference = object(DocumentReference.self, kind) { return reference }
        throw mismatch(DocumentReference.self, value, parent: parent)
    }

    // MARK: Any type

    /// Makes a value of whatever type.
    @inline(__always)
    func decode<T: Decodable>(_ type: T.Type, _ value: ValueRange, parent: Int) throws -> T {
        try unsafe decode(type, value, typeRecord(type), parent: parent)
    }

    @inline(__always)
    func decode<T: Decodable>(
        _ type: T.Type, _ value: ValueRange, _ record: UnsafeMutablePointer<DecodingTypeRecord>, parent: Int
    ) throws -> T {
        switch unsafe record.pointee.kind {
        case .other: try decodable(type, value, parent: parent)
        case .string: try unsafe reinterpret(string(value, parent: parent), as: type)
        case .date: try unsafe reinterpret(date(value, parent: parent), as: type)
        case .direct: try unsafe record.pointee.direct.unsafelyUnwrapped.decode(type, value, self, parent: parent)
        default: try unsafe decodeSpecial(type, value, record.pointee.kind, parent: parent)
        }
    }

    /// Makes a value of one of the types that are met less often.
    @inline(never)
    private func decodeSpecial<T: Decodable>(
        _ type: T.Type, _ value: ValueRange, _ kind: DecodingTypeKind, parent: Int
    ) throws -> T {
        // Each cast is from the type that the kind stands for.
        switch kind {
        case .boolean: try unsafe reinterpret(boolean(value, parent: parent), as: type)
        case .integer: try unsafe reinterpret(integer(Int.self, value, parent: parent), as: type)
        case .int32: try unsafe reinterpret(integer(Int32.self, value, parent: parent), as: type)
        case .int64: try unsafe reinterpret(integer(Int64.self, value, parent: parent), as: type)
        case .double: try unsafe reinterpret(double(value, parent: parent), as: type)
        case .float: try unsafe reinterpret(float(value, parent: parent), as: type)
        case .data: try unsafe reinterpret(data(value, parent: parent), as: type)
        case .url: try unsafe reinterpret(url(value, parent: parent), as: type)
        case .decimal: try unsafe reinterpret(decimal(value, parent: parent), as: type)
        case .timestamp: try unsafe reinterpret(timestamp(value, parent: parent), as: type)
        case .geoPoint: try unsafe reinterpret(geoPoint(value, parent: parent), as: type)
        case .vector: try unsafe reinterpret(vector(value, parent: parent), as: type)
        case .reference: try unsafe reinterpret(reference(value, parent: parent), as: type)
        case .documentID, .other, .string, .date, .direct: try decodable(type, value, parent: parent)
        }
    }

    /// Makes a value by its own `init(from:)`. `type` may be a subclass of `T`.
    @inline(__always)
    func decodable<T: Decodable>(_ type: T.Type, _ value: ValueRange, parent: Int) throws -> T {
        try withDecoder(value, parent: parent) { try type.init(from: $0) }
    }

    @inline(__always)
    func withDecoder<R>(_ value: ValueRange, parent: Int, _ body: (WireDecoder) throws -> R) throws -> R {
        let frameMark = unsafe state.pointee.frameCount
        unsafe state.pointee.depth &+= 1
        defer {
            closeFrames(downTo: frameMark)
            unsafe state.pointee.depth &-= 1
        }
        if unsafe state.pointee.depth > Self.depthMax {
            throw corrupted("Values are nested more than \(Self.depthMax) deep.", parent: parent)
        }
        return try body(WireDecoder(session: self, value: value, parent: parent))
    }
}

extension WireKind {
    /// What was found, in the words of the errors.
    var description: String {
        switch self {
        case .null: "a null value"
        case .boolean, .integer, .double: "a number"
        case .string, .bytes: "a string/data"
        case .array: "an array"
        case .map: "a dictionary"
        case .timestamp: "Timestamp"
        case .geoPoint: "GeoPoint"
        case .reference: "DocumentReference"
        case .object: "an object of Firestore"
        }
    }
}

extension WireCursor {
    /// The vector of a MapValue that is one.
    func vector() throws(MalformedBytes) -> VectorValue? {
        var entries = self
        var type: ValueRange?
        var elements: ValueRange?
        // Of entries with one name the last counts.
        while let (key, value) = try entries.nextEntry(ValueWireTag.mapEntry) {
            switch text(key) {
            case "__type__": type = value
            case "value": elements = value
            default: return nil
            }
        }
        guard let type, let elements else { return nil }
        var typeContents = unsafe WireCursor(base, type.start, type.end)
        var arrayContents = unsafe WireCursor(base, elements.start, elements.end)
        guard case .string(let name) = try typeContents.value(), text(name) == "__vector__",
            case .array(let elements) = try arrayContents.value()
        else { return nil }
        var array: [Double] = []
        var cursor = unsafe WireCursor(base, elements.start, elements.end)
        while let element = try cursor.nextElement() {
            var contents = unsafe WireCursor(base, element.start, element.end)
            switch try contents.value() {
            case .double(let double): array.append(double)
            case .integer(let integer): array.append(Double(integer))
            default: return nil
            }
        }
        return VectorValue(array)
    }
}
