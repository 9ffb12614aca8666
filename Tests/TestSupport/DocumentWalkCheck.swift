// What must hold for any bytes whatever: shared by the fuzzer and by the test that replays its saved corpus.

import Basics
import DocumentModel

package enum DocumentWalkCheck {
    /// Treats the bytes as document bytes, as a value and as a name; returns the property that they break, or nil.
    ///
    /// The properties: nothing traps; what the validator accepts can be canonicalised, and then is canonical, decodes
    /// to a tree with the same bytes, equals itself in the order, and can be looked into.
    package static func violation(_ bytes: RawSpan) -> String? {
        if let problem = fields(bytes) { return "fields: \(problem)" }
        if let problem = value(bytes) { return "value: \(problem)" }
        return names(bytes)
    }

    private static func fields(_ bytes: RawSpan) -> String? {
        var visitor = CountingVisitor()
        DocumentBytes.visit(bytes, with: &visitor)
        _ = DocumentBytes.entryValue(bytes, in: bytes, tag: DocumentTag.field)
        guard let result = try? DocumentValidator.validate(fields: bytes) else { return nil }
        var canonical = ByteBuffer()
        guard (try? DocumentCanonicalizer.canonicalize(fields: bytes, into: &canonical)) != nil else {
            return "valid bytes cannot be canonicalised"
        }
        guard let again = try? DocumentValidator.validate(fields: canonical.bytes), again.isCanonical else {
            return "canonicalised bytes are not canonical"
        }
        if again.size > result.size { return "canonical bytes are larger" }
        if result.isCanonical, !canonical.bytes.equalsBytes(bytes) { return "canonical bytes were changed" }
        guard let tree = try? MapValue(documentBytes: bytes) else { return "valid bytes do not decode" }
        if tree.documentBytes != canonical.copyBytes() { return "the tree's bytes differ" }
        for (key, expected) in tree.entries {
            guard let path = try? FieldPath(segments: [key]) else { return "a stored name is not a path" }
            guard let found = DocumentBytes.value(at: path, in: canonical.bytes) else { return "a field is not found" }
            if [UInt8](copying: found) != expected.wireBytes { return "a field has other bytes" }
        }
        return nil
    }

    private static func value(_ bytes: RawSpan) -> String? {
        // Order and keys take anything without trapping.
        var key = ByteBuffer()
        ValueKey.append(wireValue: bytes, into: &key)
        if ValueOrder.compare(wireA: bytes, wireB: bytes) != .equal { return "differs from itself" }
        guard let result = try? DocumentValidator.validate(value: bytes) else { return nil }
        var canonical = ByteBuffer()
        guard (try? DocumentCanonicalizer.canonicalize(value: bytes, into: &canonical)) != nil else {
            return "a valid value cannot be canonicalised"
        }
        if result.isCanonical, !canonical.bytes.equalsBytes(bytes) { return "a canonical value was changed" }
        guard let tree = try? Value(wire: bytes) else { return "a valid value does not decode" }
        if tree.wireBytes != canonical.copyBytes() { return "the tree's bytes differ" }
        if (try? DocumentValidator.validate(value: bytes, rules: .query)) == nil { return "stored rules are laxer" }
        return nil
    }

    private static func names(_ bytes: RawSpan) -> String? {
        if let name = try? ResourceNameView(bytes) {
            if name.isDocument {
                let path = DocumentPath(name)
                if (try? DocumentPath(path.description)) != path { return "a name does not parse again" }
                if !path.description.withUTF8Span({ $0.equalsBytes(bytes) }) { return "a name is printed otherwise" }
            }
            if (try? ResourceNameView(bytes, rules: .query)) == nil { return "stored rules are laxer for names" }
        }
        _ = ResourcePath.compareNames(bytes, bytes)
        guard bytes.byteCount <= 4096, let text = String(validatingUTF8: bytes) else { return nil }
        if let path = try? FieldPath(text), (try? FieldPath(path.description)) != path {
            return "a field path does not parse again"
        }
        return nil
    }
}

private struct CountingVisitor: DocumentVisitor {
    var count = 0

    mutating func visit(name: RawSpan, value: RawSpan, depth: Int) -> Bool {
        count += 1
        return true
    }

    mutating func leave(depth: Int) {}
}
