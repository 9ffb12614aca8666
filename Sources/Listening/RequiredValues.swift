internal import Basics
import DocumentModel
import DocumentStore
internal import QueryEngine

/// The values of one field of which every result of a query has one: by them the router finds the query.
struct RequiredValues {
    let field: RequiredField
    /// Hashes of the values, each once.
    let hashes: [Int]

    init(_ condition: QueryMatcher.EqualityCondition) {
        field = RequiredField(path: condition.field, kind: condition.kind)
        hashes = Array(Set(condition.keys.map { RequiredField.hash($0.byteSpan) }))
    }
}

/// A field of which queries require certain values.
struct RequiredField: Hashable {
    let path: FieldPath
    /// Whether the field has the value, or its array has it as an element.
    let kind: QueryMatcher.EqualityCondition.Kind

    /// Calls `body` with the hash of the field's value in a document, or with those of its elements.
    ///
    /// - Parameters:
    ///   - index: that of the document, if there is one.
    ///   - key: a writer that is reused.
    func forEachHash(in fields: RawSpan, by index: FieldIndex?, _ key: inout ByteBuffer, _ body: (Int) -> Void) {
        guard let value = DocumentBytes.value(at: path, in: fields, by: index) else { return }
        switch kind {
        case .field: body(Self.hash(of: value, &key))
        case .element:
            guard var elements = WireValue(value)?.elements else { return }
            while let element = elements.next() { body(Self.hash(of: element, &key)) }
        }
    }

    private static func hash(of value: RawSpan, _ key: inout ByteBuffer) -> Int {
        key.reset()
        ValueKey.append(wireValue: value, into: &key)
        return hash(key.bytes)
    }

    /// The hash of a value's key. Equal values have equal keys.
    static func hash(_ key: RawSpan) -> Int {
        var hasher = Hasher()
        unsafe key.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return hasher.finalize()
    }
}
