// Values given as `Any`, written by their dynamic types.

import Foundation

extension EncodingSession {
    /// Writes a document from a dictionary with literal names.
    func putDocument(_ data: [String: Any]) throws(InvalidUserData) {
        try reportingUserData { try withFrame(entryTag: ValueWireTag.documentField) { try putEntries(data, frame: $0) } }
    }

    /// Writes a document from the tree of an update.
    func putDocument(_ tree: UpdateTree) throws(InvalidUserData) {
        try reportingUserData { try withFrame(entryTag: ValueWireTag.documentField) { try putEntries(tree, frame: $0) } }
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

    /// The bytes of a document: what stands behind the head of the map.
    var documentBytes: [UInt8] {
        let bytes = copiedBytes
        guard let end = bytes.dropFirst().firstIndex(where: { $0 < 0x80 }) else { return [] }
        return Array(bytes[(end + 1)...])
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
            let entry = try openEntry(named: name)
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
    private func put(any value: Any) throws -> Bool {
        switch value {
        case let string as String: put(string: string)
        // Numbers: by their own type first, because NSNumber would take any of them for a Bool.
        case let number where type(of: number) == Bool.self: put(boolean: number as! Bool)
        case let number where type(of: number) == Int.self: put(integer: Int64(number as! Int))
        case let number where type(of: number) == Double.self: put(anyDouble: number as! Double)
        case let number where type(of: number) == Float.self: put(anyDouble: Double(number as! Float))
        case let integer as any FixedWidthInteger: try put(unknownInteger: integer)
        case let number as NSNumber: try put(number: number)
        case is NSNull: putNull()
        case let timestamp as Timestamp: put(timestamp: timestamp)
        case let date as Date: try put(date: date)
        case let data as Data: unsafe data.withUnsafeBytes { unsafe append(bytes: $0, longTag: ValueWireTag.bytes) }
        case let point as GeoPoint: put(geoPoint: point)
        case let reference as DocumentReference: try put(reference: reference)
        case let vector as VectorValue: put(vector: vector)
        case let sentinel as FieldValue: return try put(fieldValue: sentinel)
        case let optional as any AnyOptional:
            guard let wrapped = optional.anyWrapped else {
                putNull()
                break
            }
            return try put(any: wrapped)
        case let array as [Any]: return try put(array: array)
        case let map as [String: Any]: return try withFrame { try putEntries(map, frame: $0) }
        default: throw invalidValue(value, "Unsupported type: \(type(of: value))")
        }
        return true
    }

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
            throw invalidValue(integer, "\(integer) is too large: Firestore's integers have 64 bits with a sign.")
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
