// Sentinels met while encoding: they leave no bytes in the document but a transform, or a path to delete.

import DocumentModel

extension EncodingSession {
    /// Notes a sentinel at the field being encoded.
    ///
    /// - Returns: whether it left a value in the bytes, which it does only when objects are passed through.
    func put(fieldValue: FieldValue) throws -> Bool {
        if unsafe state.pointee.isTree {
            put(object: fieldValue)
            return true
        }
        if isInsideArray {
            throw invalidValue(fieldValue, "\(fieldValue.methodName) is not currently supported inside arrays.")
        }
        let path = fieldPath()
        if path.isEmpty { throw invalidValue(fieldValue, "Top-level FieldValue is not allowed.") }
        forgetSentinels()
        let root = root
        switch fieldValue.operation {
        case .delete: unsafe root.state.pointee.deletedPaths.append(path)
        default:
            let operation = try operationBytes(of: fieldValue)
            unsafe root.state.pointee.transforms.append(FieldTransformData(path: path, operation: operation))
        }
        return false
    }

    /// Forgets the sentinels at and below the field being encoded, which failed or has another value now.
    func forgetSentinels() {
        let root = root
        if unsafe root.state.pointee.transforms.isEmpty && root.state.pointee.deletedPaths.isEmpty { return }
        let path = fieldPath()
        unsafe root.state.pointee.transforms.removeAll { $0.path.begins(with: path) }
        unsafe root.state.pointee.deletedPaths.removeAll { $0.begins(with: path) }
    }

    /// Forgets the sentinels of fields that have a value: it was encoded after them under the same key.
    func forgetSentinels(replacedIn fields: RawSpan) {
        if unsafe state.pointee.transforms.isEmpty && state.pointee.deletedPaths.isEmpty { return }
        func isReplaced(_ path: [String]) -> Bool {
            guard let path = try? DocumentModel.FieldPath(segments: path) else { return false }
            return DocumentBytes.value(at: path, in: fields) != nil
        }
        unsafe state.pointee.transforms.removeAll { isReplaced($0.path) }
        unsafe state.pointee.deletedPaths.removeAll { isReplaced($0) }
    }

    private func operationBytes(of fieldValue: FieldValue) throws -> [UInt8] {
        do {
            return try fieldValue.transformOperation(database: unsafe root.state.pointee.database)
        } catch {
            throw invalidValue(fieldValue, error.message)
        }
    }
}

extension FieldValue {
    /// Tags of the oneof of `FieldTransform`.
    private enum OperationTag {
        private typealias Field = FieldNumber.DocumentTransform.FieldTransform

        static var setToServerValue: UInt8 { WireTag.byte(Field.setToServerValue, .varint) }
        static var increment: UInt8 { WireTag.byte(Field.increment, .lengthDelimited) }
        static var maximum: UInt8 { WireTag.byte(Field.maximum, .lengthDelimited) }
        static var minimum: UInt8 { WireTag.byte(Field.minimum, .lengthDelimited) }
        static var appendMissingElements: UInt8 { WireTag.byte(Field.appendMissingElements, .lengthDelimited) }
        static var removeAllFromArray: UInt8 { WireTag.byte(Field.removeAllFromArray, .lengthDelimited) }
    }

    /// The oneof field of a `FieldTransform` message that asks for this sentinel; empty for `delete()`.
    ///
    /// - Throws: `InvalidUserData` for elements of arrays that no document can hold.
    package func transformOperation(database: Substring?) throws(InvalidUserData) -> [UInt8] {
        switch operation {
        case .delete: []
        case .serverTimestamp: [OperationTag.setToServerValue, 1]
        case .increment(let operand): Self.message(OperationTag.increment, operand.valueBytes)
        case .maximum(let operand): Self.message(OperationTag.maximum, operand.valueBytes)
        case .minimum(let operand): Self.message(OperationTag.minimum, operand.valueBytes)
        case .arrayUnion(let elements):
            Self.message(
                OperationTag.appendMissingElements, try DocumentFields.arrayBytes(elements, of: self, database))
        case .arrayRemove(let elements):
            Self.message(OperationTag.removeAllFromArray, try DocumentFields.arrayBytes(elements, of: self, database))
        }
    }

    private static func message(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
        var bytes = [tag]
        var length = contents.count
        while length >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: length) | 0x80)
            length >>= 7
        }
        bytes.append(UInt8(length))
        return bytes + contents
    }
}

extension FieldValue.Operand {
    /// The operand as a Value message.
    var valueBytes: [UInt8] {
        EncodingSession.detached { session in
            switch self {
            case .integer(let integer): session.put(integer: integer)
            case .double(let double): session.put(anyDouble: double)
            }
        }
    }
}

extension EncodingSession {
    /// The bytes that `body` writes into a separate session.
    static func detached<Failure: Error>(
        _ body: (EncodingSession) throws(Failure) -> Void
    ) throws(Failure) -> [UInt8] {
        let session = unsafe take(from: CoderTables.ofThisThread.encoding)
        defer { session.recycle() }
        try body(session)
        return session.copiedBytes
    }

    /// A copy of everything written.
    var copiedBytes: [UInt8] {
        unsafe [UInt8](UnsafeRawBufferPointer(start: state.pointee.base, count: state.pointee.count))
    }
}
