// Values given as `Any`, written by their dynamic types.

import Foundation

extension EncodingSession {
    /// Writes a document from a dictionary with literal names.
    func putDocument(_ data: [String: Any]) throws(InvalidUserData) {
        try reportingUserData {
            try withFrame(entryTag: ValueWireTag.documentField) { try putEntries(data, frame: $0) }
        }
    }

    /// Writes a document from the tree of an update.
    func putDocument(_ tree: UpdateTree) throws(InvalidUserData) {
        try reportingUserData {
            try withFrame(entryTag: ValueWireTag.documentField) { try putEntries(tree, frame: $0) }
        }
    }

    /// Writes a value in which no sentinel has a meaning.
    func putOperand(_ value: Any) throws(InvalidUserData) {
        let before = (sentinels.transforms.count, sentinels.deletedPaths.count)
        if let sentinel = value as? FieldValue {
            throw InvalidUserData("\(sentinel.methodName) can only be used with updateData() and setData()")
        }
        try reportingUserData { _ = try put(any: value) }
        if before != (sentinels.transforms.count, sentinels.deletedPaths.count) {
            throw InvalidUserData("FieldValue sentinels can only be used with updateData() and setData()")
        }
    }

    /// Writes a dictionary as a document, anything else as a value; returns which it was.
    func putAnything(_ value: Any) throws(InvalidUserData) -> Bool {
        if let data = value as? [String: Any] {
            try putDocument(data)
            return true
        }
        try reportingUserData { _ = try put(any: value) }
        return false
    }

    /// The bytes of a document.
    var documentBytes: [UInt8] {
        let start = unsafe state.pointee.frames.pointee.bodyStart
        return unsafe [UInt8](UnsafeRawBufferPointer(start: state.pointee.base + start, count: count - start))
    }

    private func reportingUserData(_ body: () throws -> Void) throws(InvalidUserData) {
        do {
            try body()
        } catch let error as InvalidUserData {
            throw error
        } catch EncodingError.invalidValue(_, let context) {
            // Fields are named up to the first array: its elements have no names.
            let path = context.codingPath.prefix { $0.intValue == nil }.map(\.stringValue)
            throw InvalidUserData(context.debugDescription + Self.location(path))
        } catch {
            throw InvalidUserData("\(error)")
        }
    }

    private static func location(_ path: [String]) -> String {
        path.isEmpty ? "" : " (found in field \(FieldPath.serverFormat(path)))"
    }

    private func putEntries(_ data: [String: Any], frame: Int) throws {
        beginMap(frame)
        for (name, value) in data {
            let entry = try openEntry(named: name)
            if try put(any: value) { closeEntry(entry) } else { dropPart(from: entry.start) }
        }
    }

    private func putEntries(_ tree: UpdateTree, frame: Int) throws {
        beginMap(frame)
        for (name, node) in tree.nodes {
            let entry = try openEntry(named: name.string)
            let isPresent =
                switch node {
                case .value(let value): try put(any: value)
                case .branch(let branch): try withFrame { try putEntries(branch, frame: $0) }
                }
            if isPresent { closeEntry(entry) } else { dropPart(from: entry.start) }
        }
    }

    /// Writes a value of an accepted type.
    ///
    /// - Returns: false when it was a sentinel and leaves nothing.
    private func put(any value: Any) throws -> Bool { try put(opened: value) }

    /// The most common types are recognized by their metadata: a cast of `Any` costs up to microseconds.
    private func put<T>(opened value: T) throws -> Bool {
        // Each reinterpretation is as the type that was compared with.
        switch ObjectIdentifier(T.self) {
        case ObjectIdentifier(String.self): put(string: unsafe reinterpret(value, as: String.self))
        case ObjectIdentifier(NSNumber.self): try put(number: unsafe reinterpret(value, as: NSNumber.self))
        case ObjectIdentifier([String: Any].self):
            return try put(map: unsafe reinterpret(value, as: [String: Any].self))
        case ObjectIdentifier([Any].self): return try put(array: unsafe reinterpret(value, as: [Any].self))
        case ObjectIdentifier(Timestamp.self): put(timestamp: unsafe reinterpret(value, as: Timestamp.self))
        case ObjectIdentifier(NSNull.self): putNull()
        // These before any cast to NSNumber, which would take each of them for a Bool.
        case ObjectIdentifier(Bool.self): put(boolean: unsafe reinterpret(value, as: Bool.self))
        case ObjectIdentifier(Double.self): put(anyDouble: unsafe reinterpret(value, as: Double.self))
        case ObjectIdentifier(Float.self): put(anyDouble: Double(unsafe reinterpret(value, as: Float.self)))
        case ObjectIdentifier(CGFloat.self): put(anyDouble: Double(unsafe reinterpret(value, as: CGFloat.self)))
        case ObjectIdentifier(Int.self): put(integer: Int64(unsafe reinterpret(value, as: Int.self)))
        case ObjectIdentifier(Int64.self): put(integer: unsafe reinterpret(value, as: Int64.self))
        case ObjectIdentifier(Int32.self): put(integer: Int64(unsafe reinterpret(value, as: Int32.self)))
        case ObjectIdentifier(Int16.self): put(integer: Int64(unsafe reinterpret(value, as: Int16.self)))
        case ObjectIdentifier(Int8.self): put(integer: Int64(unsafe reinterpret(value, as: Int8.self)))
        case ObjectIdentifier(UInt.self): try put(unknownInteger: unsafe reinterpret(value, as: UInt.self))
        case ObjectIdentifier(UInt64.self): try put(unknownInteger: unsafe reinterpret(value, as: UInt64.self))
        case ObjectIdentifier(UInt32.self): put(integer: Int64(unsafe reinterpret(value, as: UInt32.self)))
        case ObjectIdentifier(UInt16.self): put(integer: Int64(unsafe reinterpret(value, as: UInt16.self)))
        case ObjectIdentifier(UInt8.self): put(integer: Int64(unsafe reinterpret(value, as: UInt8.self)))
        default: return try put(unusual: value)
        }
        return true
    }

    /// Writes a value of a type that is met less often, by casts.
    @inline(never)
    private func put(unusual value: Any) throws -> Bool {
        switch value {
        case let string as String: put(string: string)
        case let string as Substring: put(string: String(string))
        case let number as NSDecimalNumber: put(anyDouble: Double(nearestTo: number.decimalValue))
        case let number as NSNumber: try put(number: number)
        case is NSNull: putNull()
        case let timestamp as Timestamp: put(timestamp: timestamp)
        case let date as Date: try put(date: date)
        case let data as Data: unsafe data.withUnsafeBytes { unsafe append(bytes: $0, longTag: ValueWireTag.bytes) }
        case let point as GeoPoint: put(geoPoint: point)
        case let reference as DocumentReference: try put(reference: reference)
        case let vector as VectorValue: put(vector: vector)
        case let sentinel as FieldValue: return try put(fieldValue: sentinel)
        case let array as [Any]: return try put(array: array)
        case let map as [String: Any]: return try put(map: map)
        case let optional as any AnyOptional:
            guard let wrapped = optional.anyWrapped else {
                putNull()
                break
            }
            return try put(any: wrapped)
        case let integer as any FixedWidthInteger: try put(unknownInteger: integer)
        default: throw invalidValue(value, "Unsupported type: \(type(of: value))")
        }
        return true
    }

    private func put(map: [String: Any]) throws -> Bool { try withFrame { try putEntries(map, frame: $0) } }

    private func put(array: [Any]) throws -> Bool {
        try withFrame { frame in
            beginArray(frame)
            for element in array {
                let start = openElement()
                if try !put(any: element) { throw invalidValue(element, "Sentinels are not supported inside arrays.") }
                closeElement(start)
            }
        }
    }

    private func put(unknownInteger integer: any FixedWidthInteger) throws {
        guard let fitting = Int64(exactly: integer) else {
            throw invalidValue(integer, "\(integer) is too large: Firestore integers are signed 64-bit integers.")
        }
        put(integer: fitting)
    }

    /// An NSNumber by its type code; "c" stands for Bool alone on Linux.
    private func put(number: NSNumber) throws {
        switch unsafe UInt8(bitPattern: number.objCType.pointee) {
        case UInt8(ascii: "c"), UInt8(ascii: "B"): put(boolean: number.boolValue)
        case UInt8(ascii: "d"), UInt8(ascii: "f"): put(anyDouble: number.doubleValue)
        case UInt8(ascii: "Q"): try put(unsigned: number.uint64Value)
        default: put(integer: number.int64Value)
        }
    }
}

/// An optional of whatever type.
private protocol AnyOptional {
    var anyWrapped: Any? { get }
}

extension Optional: AnyOptional {
    fileprivate var anyWrapped: Any? { self }
}
