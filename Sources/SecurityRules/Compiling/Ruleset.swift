// Rules, ready to judge.

internal import Basics
package import Expressions

/// A set of security rules, compiled once.
///
///     let ruleset = try Ruleset("rules_version = '2'; service cloud.firestore { … }")
///     let verdict = ruleset.judge(request, access: documents)
///
/// Immutable; any number of threads may judge at the same time.
package final class Ruleset: Sendable {
    package let source: SourceText
    package let version: RulesVersion
    /// What the author should know though the rules can be used. In the order of the text.
    package let warnings: [RulesDiagnostic]
    /// Every `allow` statement for Firestore, in the order of the text.
    package let statements: [AllowStatement]
    /// All expressions; coverage is counted by their places.
    package let tree: ExpressionTree
    /// The place of each expression in the text.
    let ranges: [SourceRange]
    let matches: MatchBlocks
    /// Statements of `match` blocks whose paths end in a wildcard, by their places in ``statements``.
    let statementsAfterWildcards: Set<Int>
    /// The variables and the results of all functions.
    let functionRoots: [ExpressionID]
    /// Compiled patterns of texts that rules compute.
    let patterns = PatternCache()

    /// Parses and compiles a text.
    ///
    /// - Throws: if the text is too long, or has an error.
    package convenience init(_ text: String) throws(InvalidRules) {
        if text.utf8.count > RulesLimits.sourceBytes {
            let message = "The text has more than \(RulesLimits.sourceBytes) bytes."
            throw InvalidRules(diagnostics: [RulesDiagnostic(.error, SourceRange(0, 0), message)])
        }
        let source = SourceText(text)
        var compiler = RulesCompiler(try Parser.parse(source))
        try self.init(source, &compiler)
    }

    private init(_ source: SourceText, _ compiler: inout RulesCompiler) throws(InvalidRules) {
        matches = MatchBlocks(compiler.compile())
        statementsAfterWildcards = Set(matches.all.flatMap(\.statementsAfterWildcards))
        let diagnostics = Self.reported(compiler.diagnostics)
        if diagnostics.contains(where: { $0.severity == .error }) { throw InvalidRules(diagnostics: diagnostics) }
        self.source = source
        version = compiler.version
        warnings = diagnostics
        statements = compiler.statements
        tree = compiler.tree
        ranges = compiler.ranges
        functionRoots = compiler.functionRoots
    }

    /// As many diagnostics as are reported, in the order of the text: warnings take the place that errors leave.
    private static func reported(_ diagnostics: [RulesDiagnostic]) -> [RulesDiagnostic] {
        let ordered = diagnostics.sorted { $0.range.start < $1.range.start }
        let bySeverity = ordered.filter { $0.severity == .error } + ordered.filter { $0.severity != .error }
        return bySeverity.prefix(RulesLimits.diagnostics).sorted { $0.range.start < $1.range.start }
    }

    /// The place of an expression in the text.
    package func range(of expression: ExpressionID) -> SourceRange { ranges[Int(expression.index)] }
}

/// One `allow` statement.
package struct AllowStatement: Sendable {
    package let methods: Set<RulesRequest.Method>
    /// Nil: always.
    package let condition: ExpressionID?
    package let range: SourceRange
    /// A bit for each method, which is faster to look at than the set.
    private let bits: UInt8

    init(methods: Set<RulesRequest.Method>, condition: ExpressionID?, range: SourceRange) {
        self.methods = methods
        self.condition = condition
        self.range = range
        bits = methods.reduce(0) { $0 | $1.bit }
    }

    /// Whether the statement is about a method.
    func concerns(_ method: RulesRequest.Method) -> Bool { bits & method.bit != 0 }
}

extension RulesRequest.Method {
    fileprivate var bit: UInt8 {
        switch self {
        case .get: 1
        case .list: 2
        case .create: 4
        case .update: 8
        case .delete: 16
        }
    }
}

/// One segment of the path of a `match`.
enum PatternSegment: Sendable {
    case literal(String)
    /// `{name}`.
    case capture
    /// `{name=**}`.
    case glob
}

/// A `match` block. A class, so that walking the blocks copies one reference for each.
final class MatchNode: Sendable {
    let pattern: [PatternSegment]
    /// Its `allow` statements and its nested blocks in the order of the text; statements first.
    let statements: [Int]
    let children: MatchBlocks

    init(pattern: [PatternSegment], statements: [Int], children: [MatchNode]) {
        self.pattern = pattern
        self.statements = statements
        self.children = MatchBlocks(children)
    }
}

extension MatchNode {
    /// The statements of the block and of nested ones, of those whose paths end in a wildcard.
    fileprivate var statementsAfterWildcards: [Int] {
        let own: [Int] =
            switch pattern.last {
            case .capture, .glob: statements
            case .literal, nil: []
            }
        return own + children.all.flatMap(\.statementsAfterWildcards)
    }
}

/// The blocks of one level, in the order of the text. Of many, those that begin with a text are found by it: what a
/// judgement costs does not depend on the number of collections that have rules.
struct MatchBlocks: Sendable {
    let all: [MatchNode]
    /// Places of blocks in ``all`` by the text that their paths begin with.
    private var named: [UTF8Text: [Int]] = [:]
    /// Places of the blocks that are compared with every path.
    private var others: [Int] = []

    /// So many blocks are compared with a path one after the other.
    private static let unnamedMax = 8

    init(_ all: [MatchNode]) {
        self.all = all
        for (place, node) in all.enumerated() {
            if all.count > Self.unnamedMax, case .literal(let text)? = node.pattern.first {
                named[UTF8Text(text), default: []].append(place)
            } else {
                others.append(place)
            }
        }
    }

    /// Calls `body` with each block whose path may begin with a segment; false if `body` ended it.
    func allSatisfy(beginningWith segment: String?, _ body: (MatchNode) -> Bool) -> Bool {
        let named = segment.flatMap { self.named[UTF8Text($0)] } ?? []
        var (nextNamed, nextOther) = (0, 0)
        while nextNamed < named.count || nextOther < others.count {
            let isNamed =
                nextNamed < named.count && (nextOther == others.count || named[nextNamed] < others[nextOther])
            let place = isNamed ? named[nextNamed] : others[nextOther]
            if isNamed { nextNamed += 1 } else { nextOther += 1 }
            if !body(all[place]) { return false }
        }
        return true
    }
}
