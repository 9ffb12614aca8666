// The text of a ruleset as a tree.

/// The versions of the rules language.
package enum RulesVersion: Int, Sendable {
    /// `{name=**}` comes last in a path and matches one segment or more; there is no `let`.
    case one = 1
    /// `{name=**}` stands anywhere once in a path and matches any number of segments.
    case two = 2
}

/// A whole ruleset.
struct RulesetSyntax: Sendable {
    var version = RulesVersion.one
    var services: [ServiceSyntax] = []
    /// Declared outside services.
    var functions: [FunctionSyntax] = []
}

/// `service NAME { … }`.
struct ServiceSyntax: Sendable {
    let name: String
    let nameRange: SourceRange
    let body: BodySyntax
}

/// What stands between the braces of a service or of a match.
struct BodySyntax: Sendable {
    var matches: [MatchSyntax] = []
    var allows: [AllowSyntax] = []
    var functions: [FunctionSyntax] = []

    var isEmpty: Bool { matches.isEmpty && allows.isEmpty && functions.isEmpty }
}

/// `match /path/{wildcard} { … }`.
struct MatchSyntax: Sendable {
    let path: [PathSegmentSyntax]
    let pathRange: SourceRange
    let body: BodySyntax
}

/// `allow read, write: if condition;`.
struct AllowSyntax: Sendable {
    let methods: [NameSyntax]
    /// Nil: always.
    let condition: ExpressionSyntax?
    let range: SourceRange
}

/// A name in its place.
struct NameSyntax: Sendable {
    let name: String
    let range: SourceRange
}

/// `function name(parameters) { let name = value; … return result; }`.
struct FunctionSyntax: Sendable {
    let name: NameSyntax
    let parameters: [NameSyntax]
    let variables: [(name: NameSyntax, value: ExpressionSyntax)]
    let result: ExpressionSyntax
}

/// One segment of a path.
struct PathSegmentSyntax: Sendable {
    enum Kind: Sendable {
        case literal(String)
        /// `$(expression)`.
        case expression(ExpressionSyntax)
        /// `{name}`, or `{name=*}`.
        case capture(String)
        /// `{name=**}`.
        case globCapture(String)
    }

    let kind: Kind
    let range: SourceRange
}

/// An expression.
struct ExpressionSyntax: Sendable {
    indirect enum Kind: Sendable {
        case null
        case boolean(Bool)
        case integer(Int64)
        case float(Double)
        case string(String)
        case bytes([UInt8])
        case list([ExpressionSyntax])
        case map([(key: ExpressionSyntax, value: ExpressionSyntax)])
        case path([PathSegmentSyntax])
        case variable(String)
        case member(ExpressionSyntax, String)
        case index(ExpressionSyntax, ExpressionSyntax)
        case slice(ExpressionSyntax, ExpressionSyntax?, ExpressionSyntax?)
        case call(String, [ExpressionSyntax])
        case method(ExpressionSyntax, String, [ExpressionSyntax])
        case unary(PrefixOperator, ExpressionSyntax)
        case binary(BinaryOperator, ExpressionSyntax, ExpressionSyntax)
        case typeTest(ExpressionSyntax, NameSyntax)
        case conditional(ExpressionSyntax, ExpressionSyntax, ExpressionSyntax)
    }

    let kind: Kind
    let range: SourceRange
    /// Levels of expressions and brackets, this one included.
    let depth: Int
}

extension ExpressionSyntax.Kind {
    /// The expressions that stand directly in one of this kind, in the order of the text.
    var parts: [ExpressionSyntax] {
        switch self {
        case .null, .boolean, .integer, .float, .string, .bytes, .variable: []
        case .list(let elements), .call(_, let elements): elements
        case .map(let entries): entries.flatMap { [$0.key, $0.value] }
        case .path(let segments):
            segments.compactMap { if case .expression(let part) = $0.kind { part } else { nil } }
        case .member(let base, _), .unary(_, let base), .typeTest(let base, _): [base]
        case .index(let base, let index): [base, index]
        case .slice(let base, let from, let to): [base] + [from, to].compactMap { $0 }
        case .method(let base, _, let arguments): [base] + arguments
        case .binary(_, let left, let right): [left, right]
        case .conditional(let condition, let first, let second): [condition, first, second]
        }
    }
}

enum PrefixOperator: Sendable {
    case not, negate
}

enum BinaryOperator: Sendable, CaseIterable {
    case or, and, isIn, equal, notEqual, less, lessOrEqual, greater, greaterOrEqual
    case add, subtract, multiply, divide, remainder

    var symbol: String {
        switch self {
        case .or: "||"
        case .and: "&&"
        case .isIn: "in"
        case .equal: "=="
        case .notEqual: "!="
        case .less: "<"
        case .lessOrEqual: "<="
        case .greater: ">"
        case .greaterOrEqual: ">="
        case .add: "+"
        case .subtract: "-"
        case .multiply: "*"
        case .divide: "/"
        case .remainder: "%"
        }
    }

    /// A higher one binds tighter. That of `is` is ``typeTestPrecedence``.
    var precedence: Int {
        switch self {
        case .or: 1
        case .and: 2
        case .isIn: 3
        case .equal, .notEqual: 5
        case .less, .lessOrEqual, .greater, .greaterOrEqual: 6
        case .add, .subtract: 7
        case .multiply, .divide, .remainder: 8
        }
    }

    static let typeTestPrecedence = 4

    private static let bySymbol = Dictionary(uniqueKeysWithValues: allCases.map { ($0.symbol, $0) })

    init?(symbol: String) {
        guard let found = Self.bySymbol[symbol] else { return nil }
        self = found
    }
}
