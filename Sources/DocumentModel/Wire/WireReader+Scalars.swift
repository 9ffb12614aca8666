// Typed reads for message decoding: each checks the wire type of the tag it is given.

extension WireReader {
    /// Throws unless the field has the layout that its type asks for.
    @inlinable
    package func expect(_ tag: WireTag, _ type: WireType) throws(InvalidDocument) {
        if tag.rawValue & 7 != UInt32(type.rawValue) { throw InvalidDocument(.wrongWireType, offset: position) }
    }

    /// A `bool` field: any integer but 0 is true.
    @inlinable
    @_lifetime(self: copy self)
    package mutating func boolean(_ tag: WireTag) throws(InvalidDocument) -> Bool {
        try expect(tag, .varint)
        return try varint() != 0
    }

    /// An `int64` field.
    @inlinable
    @_lifetime(self: copy self)
    package mutating func int64(_ tag: WireTag) throws(InvalidDocument) -> Int64 {
        try expect(tag, .varint)
        return Int64(bitPattern: try varint())
    }

    /// An `int32` or enumeration field; as in protobuf the upper bits of a longer number are dropped.
    @inlinable
    @_lifetime(self: copy self)
    package mutating func int32(_ tag: WireTag) throws(InvalidDocument) -> Int32 {
        try expect(tag, .varint)
        return Int32(truncatingIfNeeded: try varint())
    }

    /// A `uint64` field.
    @inlinable
    @_lifetime(self: copy self)
    package mutating func uint64(_ tag: WireTag) throws(InvalidDocument) -> UInt64 {
        try expect(tag, .varint)
        return try varint()
    }

    /// A `double` field.
    @inlinable
    @_lifetime(self: copy self)
    package mutating func double(_ tag: WireTag) throws(InvalidDocument) -> Double {
        try expect(tag, .fixed64)
        return Double(bitPattern: try fixed64())
    }

    /// A `bytes` or message field, lent.
    @inlinable
    @_lifetime(copy self)
    package mutating func span(_ tag: WireTag) throws(InvalidDocument) -> RawSpan {
        try expect(tag, .lengthDelimited)
        return try lengthDelimited()
    }

    /// A message field, ready to be read.
    @inlinable
    @_lifetime(copy self)
    package mutating func message(_ tag: WireTag) throws(InvalidDocument) -> WireReader {
        try expect(tag, .lengthDelimited)
        return WireReader(try lengthDelimited())
    }

    /// A `bytes` field, copied.
    @_lifetime(self: copy self)
    package mutating func byteArray(_ tag: WireTag) throws(InvalidDocument) -> [UInt8] {
        [UInt8](copying: try span(tag))
    }

    /// A `string` field, copied; throws when it is not valid UTF-8.
    @_lifetime(self: copy self)
    package mutating func string(_ tag: WireTag) throws(InvalidDocument) -> String {
        let start = position
        let bytes = try span(tag)
        guard let text = String(validatingUTF8: bytes) else { throw InvalidDocument(.invalidUTF8, offset: start) }
        return text
    }

    /// A `google.protobuf.Timestamp` field as it stands; its range is the caller's to check.
    @_lifetime(self: copy self)
    package mutating func timestamp(_ tag: WireTag) throws(InvalidDocument) -> TimestampValue {
        var message = try message(tag)
        return try TimestampValue(reading: &message)
    }

    /// The numbers of one occurrence of a repeated integer field, packed or not.
    @_lifetime(self: copy self)
    package mutating func repeatedVarints(
        _ tag: WireTag, _ body: (UInt64) throws(InvalidDocument) -> Void
    ) throws(InvalidDocument) {
        if tag.wireType == .varint { return try body(try varint()) }
        var packed = try message(tag)
        while !packed.isAtEnd { try body(try packed.varint()) }
    }
}

extension TimestampValue {
    /// Reads the fields of a `google.protobuf.Timestamp` message to its end.
    package init(reading message: inout WireReader) throws(InvalidDocument) {
        self.init(seconds: 0, nanoseconds: 0)
        while let tag = try message.nextTag() {
            switch tag.fieldNumber {
            case FieldNumber.Protobuf.Timestamp.seconds: seconds = try message.int64(tag)
            case FieldNumber.Protobuf.Timestamp.nanos: nanoseconds = try message.int32(tag)
            default: try message.skip(tag)
            }
        }
    }
}

// MARK: Values and entries

extension WireReader {
    /// Reads a `Value` message to its end and moves back to the payload of the last field that sets a type: the one
    /// that counts. Throws for pipeline-only values and when there is no type.
    @_lifetime(self: copy self)
    mutating func seekLastTypedField() throws(InvalidDocument) -> WireTag {
        typealias Field = FieldNumber.Value
        var last: (tag: WireTag, position: Int)?
        while let tag = try nextTag() {
            switch tag.fieldNumber {
            case Field.booleanValue, Field.integerValue, Field.doubleValue, Field.referenceValue, Field.mapValue,
                Field.geoPointValue, Field.arrayValue, Field.timestampValue, Field.nullValue, Field.stringValue,
                Field.bytesValue:
                last = (tag, position)
            case ValueTag.pipelineFields: throw InvalidDocument(.pipelineValue, offset: position)
            default: break
            }
            try skip(tag)
        }
        guard let last else { throw InvalidDocument(.valueTypeMissing, offset: 0) }
        position = last.position
        return last.tag
    }

    /// Moves past a map entry and returns where its key and its value stand in `bytes`; the last of each counts. An
    /// absent key is an empty one.
    @_lifetime(self: copy self)
    mutating func mapEntry() throws(InvalidDocument) -> (key: Range<Int>, value: Range<Int>) {
        let end = try endOfLengthDelimited()
        var key = end..<end
        var value: Range<Int>?
        var parts = WireReader(bytes.extracting(0..<end))
        parts.position = position
        while let part = try parts.nextTag() {
            switch part.fieldNumber {
            case FieldNumber.MapEntry.key, FieldNumber.MapEntry.value:
                try parts.expect(part, .lengthDelimited)
                let end = try parts.endOfLengthDelimited()
                if part.fieldNumber == FieldNumber.MapEntry.key {
                    key = parts.position..<end
                } else {
                    value = parts.position..<end
                }
                parts.position = end
            default: try parts.skip(part)
            }
        }
        guard let value else { throw InvalidDocument(.valueTypeMissing, offset: position) }
        position = end
        return (key, value)
    }
}
