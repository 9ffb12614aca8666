/// Splits the path strings of the API into segments. Paths are relative to the documents root, a document or a
/// collection.
///
/// A single slash at either end is allowed. The number of segments distinguishes collections from documents. A violated
/// rule is a programming error. The server checks ids (length, reserved names).
enum PathRules {
    /// The segments of `path`, which is not empty and has no empty segment inside.
    static func segments(_ path: String) throws(RuleViolation) -> [String] {
        // By bytes: a slash followed by a combining mark is one Character that is not equal to "/".
        let slash = UInt8(ascii: "/")
        var text = path.utf8[...]
        if text.first == slash { text = text.dropFirst() }
        if text.last == slash { text = text.dropLast() }
        if text.isEmpty { throw RuleViolation("Path cannot be empty.") }
        let parts = text.split(separator: slash, omittingEmptySubsequences: false)
        if parts.contains(where: \.isEmpty) {
            throw RuleViolation("Invalid path (\(path)). Paths must not contain // in them.")
        }
        return parts.map { String(Substring($0)) }
    }

    /// The segments of a collection `path` below `base`, a document or the root; all of them, from the root.
    static func collection(_ path: String, below base: [String] = []) throws(RuleViolation) -> [String] {
        let all = base + (try segments(path))
        if all.count.isMultiple(of: 2) {
            throw RuleViolation(
                "Invalid collection reference. Collection references must have an odd number of segments, "
                    + "but \(all.joined(separator: "/")) has \(all.count)")
        }
        return all
    }

    /// The segments of a document `path` below `base`, a collection or the root; all of them, from the root.
    static func document(_ path: String, below base: [String] = []) throws(RuleViolation) -> [String] {
        let all = base + (try segments(path))
        if !all.count.isMultiple(of: 2) {
            throw RuleViolation(
                "Invalid document reference. Document references must have an even number of segments, "
                    + "but \(all.joined(separator: "/")) has \(all.count)")
        }
        return all
    }

    /// Checks the id of a collection group.
    static func collectionGroup(_ id: String) throws(RuleViolation) -> String {
        if id.isEmpty { throw RuleViolation("Collection ID cannot be nil or empty.") }
        if id.utf8.contains(UInt8(ascii: "/")) {
            throw RuleViolation("Invalid collection ID (\(id)). Collection IDs must not contain / in them.")
        }
        return id
    }
}

/// Ids of new documents.
enum AutoID {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

    /// 20 random characters of `[A-Za-z0-9]`: 119 bits, from the system's generator.
    static func next() -> String {
        var generator = SystemRandomNumberGenerator()
        return String(unsafeUninitializedCapacity: 20) { buffer in
            var count = 0
            while count < 20 {
                // Ten 6-bit pieces of each word; the two pieces past the alphabet are thrown away.
                var word = generator.next()
                for _ in 0..<10 where count < 20 {
                    let piece = Int(word & 63)
                    word >>= 6
                    guard piece < alphabet.count else { continue }
                    buffer[count] = alphabet[piece]
                    count += 1
                }
            }
            return count
        }
    }
}
