import Basics

/// The canonical bytes of one `google.firestore.v1.Value` message, without tag and length.
///
/// Operands of filters, cursor values and operands of transforms have this form. The query and write layers compare and
/// copy encoded values and never decode them into trees. The bytes are canonical (minimal varints, sorted map keys,
/// timestamps rounded down to microseconds, one NaN), so identical values have equal bytes.
package struct EncodedValue: Sendable, Hashable {
    /// The message bytes; never empty (a value without a type is refused where values are decoded).
    package let bytes: [UInt8]

    /// Wraps bytes that are canonical already.
    package init(canonical bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Copies bytes that are canonical already.
    package init(copying bytes: RawSpan) {
        self.bytes = [UInt8](copying: bytes)
    }

    /// The canonical bytes of a value.
    package init(_ value: Value) {
        bytes = value.wireBytes
    }

    /// Reads and checks a value that is compared: a filter's operand, a cursor's value.
    ///
    /// The rules are those of stored values, but references may bear reserved ids.
    package init(operand wire: RawSpan) throws(InvalidDocument) {
        try self.init(checking: wire, rules: .query)
    }

    /// Reads and checks a value that a write may store: a transform's element.
    package init(element wire: RawSpan) throws(InvalidDocument) {
        try self.init(checking: wire, rules: .request)
    }

    private init(checking wire: RawSpan, rules: NameRules) throws(InvalidDocument) {
        if try DocumentValidator.validate(value: wire, rules: rules).isCanonical {
            bytes = [UInt8](copying: wire)
        } else {
            var writer = ByteBuffer(capacity: wire.byteCount)
            try DocumentCanonicalizer.canonicalize(value: wire, into: &writer)
            bytes = writer.copyBytes()
        }
    }

    /// Reads and checks the operand of a list operator: an array whose elements may be arrays themselves.
    ///
    /// Anything but an array is read as an ordinary operand, for the planner to refuse.
    package init(listOperand wire: RawSpan) throws(InvalidDocument) {
        var reader = WireReader(wire)
        guard let tag = try reader.nextTag(), tag.rawValue == ValueTag.array else {
            try self.init(operand: wire)
            return
        }
        var elements = WireReader(try reader.lengthDelimited())
        guard reader.isAtEnd else {
            try self.init(operand: wire)
            return
        }
        var list = ByteBuffer(capacity: wire.byteCount)
        try list.withLengthPrefix(field: FieldNumber.Value.arrayValue) { (list) throws(InvalidDocument) in
            while let tag = try elements.nextTag() {
                if tag.fieldNumber == FieldNumber.ArrayValue.values {
                    list.appendField(
                        FieldNumber.ArrayValue.values, bytes: try EncodedValue(operand: try elements.span(tag)).bytes)
                } else {
                    try elements.skip(tag)
                }
            }
        }
        self.init(canonical: list.copyBytes())
    }

    /// The null value.
    package static let null = EncodedValue(.null)

    /// Lends the value's message.
    package var span: RawSpan {
        @_lifetime(borrow self)
        borrowing get { bytes.byteSpan }
    }
}
