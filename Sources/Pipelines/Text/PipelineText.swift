// The text form of pipelines.
//
//     collection(books) | where(rating > 4 and "sf" in tags) | aggregate(n: count() by genre) | sort(n desc) | limit(3)
//
// A stage is a name with arguments. Arguments are expressions; those of the form `name: expression` are fields of the
// stages that take fields, and options of others. Docs: docs/pipelines.md, "The text form".

internal import Basics
internal import DocumentModel

/// What is wrong with the text of a pipeline, and where.
package struct PipelineTextError: Error, CustomStringConvertible {
    let message: String
    /// The column, from 1.
    let column: Int

    package init(_ message: String, column: Int) {
        self.message = message
        self.column = column
    }

    package var description: String { "\(message) at column \(column)" }
}

/// Reads a pipeline.
package struct PipelineText {
    private typealias Node = TextNode

    private var tokens: PipelineTokens

    /// Levels of expressions.
    private static let depthMax = 100
    private var depth = 0

    private init(_ text: String) throws(PipelineTextError) { tokens = try PipelineTokens(text) }

    /// The bytes of the `StructuredPipeline` of a text.
    package static func structuredPipeline(_ text: String) throws(PipelineTextError) -> [UInt8] {
        var reader = try PipelineText(text)
        let stages = try reader.pipeline()
        guard reader.tokens.next == .end else { throw reader.tokens.failure("unexpected \(reader.tokens.next)") }
        var writer = ByteBuffer()
        writer.withLengthPrefix(field: FieldNumber.StructuredPipeline.pipeline) { Node.encode(stages, into: &$0) }
        return writer.copyBytes()
    }

    /// The option that asks for a plan, as a field of `StructuredPipeline`.
    package static func explainOption(_ mode: PipelineExplanation.Mode) -> [UInt8] {
        var writer = ByteBuffer()
        writer.withLengthPrefix(field: FieldNumber.StructuredPipeline.options) {
            Node.encode(("explain_options", .map([("mode", .literal(.string(mode.rawValue)))])), into: &$0)
        }
        return writer.copyBytes()
    }

    // MARK: Stages

    private mutating func pipeline() throws(PipelineTextError) -> [Node.Call] {
        var stages = [try stage()]
        while tokens.takes("|") { stages.append(try stage()) }
        return stages
    }

    private static let sources: Set<String> = [
        "collection", "collection_group", "database", "documents", "literals", "subcollection",
    ]
    /// Stages that take one map of fields.
    private static let fieldStages: Set<String> = ["select", "add_fields", "distinct", "let", "update"]

    private mutating func stage() throws(PipelineTextError) -> Node.Call {
        guard case .name(let name) = tokens.next else { throw tokens.failure("the name of a stage is missing") }
        tokens.advance()
        try tokens.expect("(")
        switch name {
        case "collection", "documents", "subcollection", "collection_group": return try source(name)
        case "sort":
            return Node.Call(
                name: name, arguments: try list { (reader) throws(PipelineTextError) in try reader.ordering() })
        case "aggregate": return try aggregate()
        case _ where Self.fieldStages.contains(name):
            let fields = try list { (reader) throws(PipelineTextError) in try reader.field() }
            return Node.Call(name: name, arguments: fields.isEmpty ? [] : [.map(fields)])
        default:
            var options: [Node.Entry] = []
            let arguments = try list { (reader) throws(PipelineTextError) -> Node? in
                guard let option = try reader.option(of: name) else { return try reader.expression() }
                options.append(option)
                return nil
            }
            return Node.Call(name: name, arguments: arguments.compactMap { $0 }, options: options)
        }
    }

    /// An option of a stage. The one that orders the results of a search has orderings, as the stage `sort` has.
    private mutating func option(of stage: String) throws(PipelineTextError) -> Node.Entry? {
        guard stage == "search", tokens.next == .name("sort") else { return try namedEntry() }
        return try namedEntry { (reader) throws(PipelineTextError) in
            try reader.tokens.expect("[")
            return .list(try reader.list(end: "]") { (reader) throws(PipelineTextError) in try reader.ordering() })
        }
    }

    /// Paths may stand without quotation marks.
    private mutating func source(_ name: String) throws(PipelineTextError) -> Node.Call {
        let paths = try list { (reader) throws(PipelineTextError) in try reader.path() }
        switch name {
        case "collection_group":
            return Node.Call(name: name, arguments: [.literal(.reference(""))] + paths.map { .literal(.string($0)) })
        case "subcollection": return Node.Call(name: name, arguments: paths.map { .literal(.string($0)) })
        default:
            return Node.Call(
                name: name, arguments: paths.map { .literal(.reference($0.hasPrefix("/") ? $0 : "/\($0)")) })
        }
    }

    private mutating func path() throws(PipelineTextError) -> String {
        if case .string(let text) = tokens.next {
            tokens.advance()
            return text
        }
        var path = tokens.takes("/") ? "/" : ""
        while true {
            guard case .name(let word) = tokens.next else { throw tokens.failure("a path is missing") }
            tokens.advance()
            path += word
            guard tokens.takes("/") else { return path }
            path += "/"
        }
    }

    private mutating func ordering() throws(PipelineTextError) -> Node {
        let expression = try expression()
        let direction = tokens.takes(word: "desc") ? "descending" : "ascending"
        _ = tokens.takes(word: "asc")
        return .map([("direction", .literal(.string(direction))), ("expression", expression)])
    }

    private mutating func aggregate() throws(PipelineTextError) -> Node.Call {
        var accumulators: [Node.Entry] = []
        var groups: [Node.Entry] = []
        if !tokens.takes(")") {
            repeat { accumulators.append(try field()) } while tokens.takes(",")
            if tokens.takes(word: "by") { repeat { groups.append(try field()) } while tokens.takes(",") }
            try tokens.expect(")")
        }
        return Node.Call(name: "aggregate", arguments: [.map(accumulators), .map(groups)])
    }

    /// `name: expression`, or an expression that is named by its field or function.
    private mutating func field() throws(PipelineTextError) -> Node.Entry {
        if let entry = try namedEntry() { return entry }
        let expression = try expression()
        switch expression {
        case .field(let path): return (path, expression)
        case .call(let call): return (call.name, expression)
        default: throw tokens.failure("the value needs a name, as in total: a + b,")
        }
    }

    /// - Parameter value: reads what is after the name.
    private mutating func namedEntry(
        _ value: (inout PipelineText) throws(PipelineTextError) -> Node = { (reader) throws(PipelineTextError) in
            try reader.expression()
        }
    ) throws(PipelineTextError) -> Node.Entry? {
        let name: String
        switch tokens.next {
        case .name(let text), .string(let text): name = text
        default: return nil
        }
        guard tokens.afterNext == .symbol(":") else { return nil }
        tokens.advance()
        tokens.advance()
        return (name, try value(&self))
    }

    /// Elements up to a closing parenthesis, with commas between them.
    private mutating func list<Element>(
        end: String = ")", _ element: (inout PipelineText) throws(PipelineTextError) -> Element
    ) throws(PipelineTextError) -> [Element] {
        if tokens.takes(end) { return [] }
        var elements: [Element] = []
        repeat { elements.append(try element(&self)) } while tokens.takes(",")
        try tokens.expect(end)
        return elements
    }

    // MARK: Expressions

    private mutating func expression() throws(PipelineTextError) -> Node {
        depth += 1
        defer { depth -= 1 }
        if depth > Self.depthMax { throw tokens.failure("expressions are nested more than \(Self.depthMax) deep") }
        var parts = [try conjunction()]
        while tokens.takes(word: "or") { parts.append(try conjunction()) }
        return parts.count == 1 ? parts[0] : .call("or", parts)
    }

    private mutating func conjunction() throws(PipelineTextError) -> Node {
        var parts = [try negation()]
        while tokens.takes(word: "and") { parts.append(try negation()) }
        return parts.count == 1 ? parts[0] : .call("and", parts)
    }

    private mutating func negation() throws(PipelineTextError) -> Node {
        var negations = 0
        while tokens.afterNext != .symbol("("), tokens.takes(word: "not") { negations += 1 }
        let condition = try comparison()
        return negations % 2 == 1 ? .call("not", [condition]) : condition
    }

    private static let comparisons = [
        "==": "equal", "!=": "not_equal", "<": "less_than", "<=": "less_than_or_equal", ">": "greater_than",
        ">=": "greater_than_or_equal",
    ]

    private mutating func comparison() throws(PipelineTextError) -> Node {
        let left = try sum()
        if tokens.takes(word: "in") {
            let right = try sum()
            // A list is searched for the field; a field is searched for the value.
            if case .field = right { return .call("array_contains", [right, left]) }
            return .call("equal_any", [left, right])
        }
        guard case .symbol(let symbol) = tokens.next, let function = Self.comparisons[symbol] else { return left }
        tokens.advance()
        return .call(function, [left, try sum()])
    }

    private mutating func sum() throws(PipelineTextError) -> Node {
        var left = try product()
        while true {
            if tokens.takes("+") {
                left = .call("add", [left, try product()])
            } else if tokens.takes("-") {
                left = .call("subtract", [left, try product()])
            } else {
                return left
            }
        }
    }

    private mutating func product() throws(PipelineTextError) -> Node {
        var left = try operand()
        while true {
            if tokens.takes("*") {
                left = .call("multiply", [left, try operand()])
            } else if tokens.takes("/") {
                left = .call("divide", [left, try operand()])
            } else if tokens.takes("%") {
                left = .call("mod", [left, try operand()])
            } else {
                return left
            }
        }
    }

    private mutating func operand() throws(PipelineTextError) -> Node {
        switch tokens.next {
        case .literal(let value):
            tokens.advance()
            return .literal(value)
        case .string(let text):
            tokens.advance()
            return .literal(.string(text))
        case .variable(let name):
            tokens.advance()
            return .variable(name)
        case .symbol("("):
            tokens.advance()
            let inner = try expression()
            try tokens.expect(")")
            return inner
        case .symbol("["):
            tokens.advance()
            return .list(try list(end: "]") { (reader) throws(PipelineTextError) in try reader.expression() })
        case .symbol("{"):
            tokens.advance()
            return .map(
                try list(end: "}") { (reader) throws(PipelineTextError) in
                    guard let entry = try reader.namedEntry() else { throw reader.tokens.failure("a key is missing") }
                    return entry
                })
        case .name(let name): return try named(name)
        default: throw tokens.failure("unexpected \(tokens.next)")
        }
    }

    private mutating func named(_ name: String) throws(PipelineTextError) -> Node {
        if tokens.afterNext == .symbol("("), Self.sources.contains(name) { return .pipeline(try pipeline()) }
        tokens.advance()
        guard tokens.takes("(") else { return .field(name) }
        let arguments = try list { (reader) throws(PipelineTextError) in try reader.expression() }
        switch (name, arguments.first) {
        case ("reference", .literal(.string(let path))?): return .literal(.reference(path))
        case ("vector", _):
            // The elements of a vector are doubles.
            let elements = arguments.map { element -> Node in
                if case .literal(.integer(let number)) = element { .literal(.double(Double(number))) } else { element }
            }
            let entries: [Node.Entry] = [("__type__", .literal(.string("__vector__"))), ("value", .list(elements))]
            return .map(entries)
        default: return .call(name, arguments)
        }
    }
}
