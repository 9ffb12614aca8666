// Functions on strings, byte strings and references. Arguments are values or expressions.

extension Expression {
    // MARK: Lengths and forms

    /// The length of a string, an array or a map.
    public func length() -> FunctionExpression { function("length") }

    /// The number of characters.
    public func charLength() -> FunctionExpression { function("char_length") }

    /// The number of bytes.
    public func byteLength() -> FunctionExpression { function("byte_length") }

    /// The text in lower case.
    public func toLower() -> FunctionExpression { function("to_lower") }

    /// The text in upper case.
    public func toUpper() -> FunctionExpression { function("to_upper") }

    /// The text, the bytes or the elements backwards.
    public func reverse() -> FunctionExpression { function("reverse") }

    /// The text backwards.
    public func stringReverse() -> FunctionExpression { function("string_reverse") }

    /// The text so many times.
    public func stringRepeat(_ count: any Sendable) -> FunctionExpression { function("string_repeat", count) }

    /// The text without white space, or without the characters of `value`, at its ends.
    public func trim(_ value: (any Sendable)? = nil) -> FunctionExpression { function("trim", optional: value) }

    /// The text without white space, or without the characters of `value`, at its start.
    public func ltrim(_ value: (any Sendable)? = nil) -> FunctionExpression { function("ltrim", optional: value) }

    /// The text without white space, or without the characters of `value`, at its end.
    public func rtrim(_ value: (any Sendable)? = nil) -> FunctionExpression { function("rtrim", optional: value) }

    // MARK: Parts

    /// The text with others after it.
    public func stringConcat(_ strings: [any Sendable]) -> FunctionExpression {
        function("string_concat", list: strings)
    }

    /// The texts, arrays or byte strings in a row.
    public func concat(_ values: [any Sendable]) -> FunctionExpression { function("concat", list: values) }

    /// A part of the text, from a position on.
    public func substring(position: any Sendable, length: (any Sendable)? = nil) -> FunctionExpression {
        function("substring", position, optional: length)
    }

    /// The parts between the delimiters.
    public func split(delimiter: any Sendable) -> FunctionExpression { function("split", delimiter) }

    /// The texts of an array with the delimiter between them.
    public func join(delimiter: any Sendable) -> FunctionExpression { function("join", delimiter) }

    /// The position of the first place of another text; -1 if there is none.
    public func stringIndexOf(_ substring: any Sendable) -> FunctionExpression {
        function("string_index_of", substring)
    }

    /// The text with another one in place of each of its places of `oldValue`.
    public func stringReplaceAll(_ oldValue: any Sendable, with newValue: any Sendable) -> FunctionExpression {
        function("string_replace_all", oldValue, newValue)
    }

    /// The text with another one in place of its first place of `oldValue`.
    public func stringReplaceOne(_ oldValue: any Sendable, with newValue: any Sendable) -> FunctionExpression {
        function("string_replace_one", oldValue, newValue)
    }

    // MARK: Conditions and patterns

    /// Whether the text begins with another.
    public func startsWith(_ prefix: any Sendable) -> any BooleanExpression { condition("starts_with", prefix) }

    /// Whether the text ends with another.
    public func endsWith(_ suffix: any Sendable) -> any BooleanExpression { condition("ends_with", suffix) }

    /// Whether the text contains another.
    public func stringContains(_ substring: any Sendable) -> any BooleanExpression {
        condition("string_contains", substring)
    }

    /// Whether the text fits a pattern with `%` and `_`.
    public func like(_ pattern: any Sendable) -> any BooleanExpression { condition("like", pattern) }

    /// Whether a part of the text fits a regular expression.
    public func regexContains(_ pattern: any Sendable) -> any BooleanExpression { condition("regex_contains", pattern) }

    /// Whether the whole text fits a regular expression.
    public func regexMatch(_ pattern: any Sendable) -> any BooleanExpression { condition("regex_match", pattern) }

    /// The first part of the text that fits a regular expression; null if there is none.
    public func regexFind(_ pattern: any Sendable) -> FunctionExpression { function("regex_find", pattern) }

    /// All parts of the text that fit a regular expression.
    public func regexFindAll(_ pattern: any Sendable) -> FunctionExpression { function("regex_find_all", pattern) }

    /// Parts of the text around the words of a text query, in the stage `search`. Hearth's server does not have the
    /// function yet, and a pipeline with it fails.
    ///
    /// - Parameters:
    ///   - maxSnippetWidth: the most characters of a part.
    ///   - maxSnippets: the most parts.
    ///   - separator: the text between two parts.
    public func snippet(
        _ rquery: String, maxSnippetWidth: Int? = nil, maxSnippets: Int? = nil, separator: String? = nil
    ) -> any Expression {
        var options: [String: any Sendable] = [:]
        if let maxSnippetWidth { options["maxSnippetWidth"] = maxSnippetWidth }
        if let maxSnippets { options["maxSnippets"] = maxSnippets }
        if let separator { options["separator"] = separator }
        return FunctionExpression(functionName: "snippet", args: [self, Constant(rquery)], options: options)
    }

    // MARK: References and types

    /// The id of a reference.
    public func documentId() -> FunctionExpression { function("document_id") }

    /// The id of the collection of a reference.
    public func collectionId() -> FunctionExpression { function("collection_id") }

    /// The document that a document lies below; null for one of a collection at the root.
    public func parent() -> FunctionExpression { function("parent") }

    /// The name of the type.
    public func type() -> FunctionExpression { function("type") }

    /// Whether the value is of a type: `"string"`, `"int64"`, `"number"`.
    public func isType(_ type: String) -> any BooleanExpression { condition("is_type", type) }
}
