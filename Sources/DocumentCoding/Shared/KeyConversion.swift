extension EncodingSession {
    /// The field name of a key under a strategy that is not the default.
    func convertedName(of key: any CodingKey, frame: Int? = nil) -> String {
        switch strategies?.values.key ?? .useDefaultKeys {
        case .useDefaultKeys: key.stringValue
        case .convertToSnakeCase: KeyConversion.snakeCase(key.stringValue)
        case .custom(let convert): convert(codingPath(toFrame: frame ?? top) + [key]).stringValue
        }
    }

    /// Remembers the Swift key of the entry being written, for coding paths, while a strategy changes names.
    @inline(__always)
    func noteSwiftKey(_ key: (any CodingKey)?) {
        if unsafe state.pointee.usesDefaultKeys { return }
        let top = top
        while unsafe state.pointee.swiftKeys.count <= top { unsafe state.pointee.swiftKeys.append(nil) }
        unsafe state.pointee.swiftKeys[top] = key
    }
}

/// The key strategies: from Swift names to field names and back.
enum KeyConversion {
    /// `myURLProperty` -> `my_url_property`: an underscore where a lower-case letter meets an upper-case one, and
    /// before the last of several upper-case letters when a lower-case one follows. Outer underscores stay.
    static func snakeCase(_ key: String) -> String {
        let characters = Array(key)
        var result = ""
        for (position, character) in characters.enumerated() {
            if character.isUppercase, position > 0 {
                let previous = characters[position - 1]
                let isLastCapital =
                    previous.isUppercase && position + 1 < characters.count && characters[position + 1].isLowercase
                if previous != "_", !previous.isUppercase || isLastCapital { result += "_" }
            }
            result += character.lowercased()
        }
        return result
    }

    /// `my_url_property` -> `myUrlProperty`: the first word in lower case, the others capitalised. Outer underscores
    /// stay; a key without inner underscores stays as it is.
    static func camelCase(_ key: String) -> String {
        let leading = key.prefix { $0 == "_" }
        if leading.count == key.count { return key }
        let trailing = String(key.reversed().prefix { $0 == "_" })
        let words = key.dropFirst(leading.count).dropLast(trailing.count).split(separator: "_")
        if words.count < 2 { return key }
        return leading + words[0].lowercased() + words.dropFirst().map(\.capitalizedWord).joined() + trailing
    }
}

extension Substring {
    /// The first letter in upper case, the others in lower case.
    fileprivate var capitalizedWord: String { prefix(1).uppercased() + dropFirst().lowercased() }
}
