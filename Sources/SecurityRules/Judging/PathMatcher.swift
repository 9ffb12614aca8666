// Which `match` blocks a path fits.

internal import Basics
internal import Expressions

/// A segment of a path that is judged.
enum TargetSegment: Sendable {
    case known(String)
    /// One segment that differs between the documents of a query.
    case unknown
    /// Any number of segments, which differ between the documents of a query for a collection group.
    case anyNumber

    var text: String? {
        if case .known(let text) = self { text } else { nil }
    }

    /// The target of a path below `documents`.
    static func known(_ path: [String], database: String) -> [TargetSegment] {
        var target: [TargetSegment] = []
        target.reserveCapacity(path.count + 5)
        target.append(.known("databases"))
        target.append(.known(database))
        target.append(.known("documents"))
        for segment in path { target.append(.known(segment)) }
        return target
    }
}

/// Finds the statements whose paths fit a target in every case.
struct PathMatcher {
    let version: RulesVersion
    let target: [TargetSegment]
    /// Called with the number of each statement and the values of the wildcards; returns whether to continue.
    let visit: (Int, [Operand]) -> Bool

    /// Visits the statements in the order of the text; false if `visit` ended it.
    func run(_ blocks: MatchBlocks) -> Bool {
        var captures: [Operand] = []
        return match(blocks, at: 0, &captures)
    }

    private func match(_ blocks: MatchBlocks, at: Int, _ captures: inout [Operand]) -> Bool {
        blocks.allSatisfy(beginningWith: at < target.count ? target[at].text : nil) { match($0, 0, at: at, &captures) }
    }

    /// Matches the pattern of a block from one of its segments on with the target from an offset on.
    ///
    /// - Parameter captures: the values of the wildcards before; the same afterwards.
    private func match(_ node: MatchNode, _ segment: Int, at: Int, _ captures: inout [Operand]) -> Bool {
        guard segment < node.pattern.count else { return enter(node, at: at, &captures) }
        switch node.pattern[segment] {
        case .literal(let text):
            guard at < target.count, let known = target[at].text, known.hasSameUTF8(as: text) else {
                return true
            }
            return match(node, segment + 1, at: at + 1, &captures)
        case .capture:
            guard at < target.count else { return true }
            let value: Operand
            switch target[at] {
            case .known(let text): value = .string(text)
            case .unknown: value = .object(UnknownValue(.string))
            case .anyNumber: return true
            }
            return match(node, segment + 1, at: at + 1, taking: value, &captures)
        case .glob:
            // In version 1 it takes all that is left, one segment at least; in version 2 it does if nothing follows.
            let isLast = segment == node.pattern.count - 1 && node.children.all.isEmpty
            let first = version == .one ? max(target.count, at + 1) : isLast ? target.count : at
            guard first <= target.count else { return true }
            for end in first...target.count {
                let value = glob(target[at..<end])
                if !match(node, segment + 1, at: end, taking: value, &captures) { return false }
            }
            return true
        }
    }

    /// As ``match(_:_:at:_:)``, after a wildcard with a value.
    private func match(
        _ node: MatchNode, _ segment: Int, at: Int, taking value: Operand, _ captures: inout [Operand]
    ) -> Bool {
        captures.append(value)
        defer { captures.removeLast() }
        return match(node, segment, at: at, &captures)
    }

    private func glob(_ taken: ArraySlice<TargetSegment>) -> Operand {
        let texts = taken.compactMap(\.text)
        return .object(texts.count == taken.count ? RulesPath(literals: texts) : UnknownValue(.path))
    }

    private func enter(_ node: MatchNode, at: Int, _ captures: inout [Operand]) -> Bool {
        if at == target.count {
            for statement in node.statements where !visit(statement, captures) { return false }
        }
        return match(node.children, at: at, &captures)
    }
}

/// A value of one type that differs between the documents of a query.
final class UnknownValue: UnprovenValue {
    private let type: RulesType

    init(_ type: RulesType) { self.type = type }

    func isOfType(_ type: RulesType) -> Bool { type == self.type }

    func equals(_ other: Operand, _ mode: RulesEquality.Mode) throws(ExpressionError) -> Bool {
        if other.unproven == nil, RulesType(other) != type { return false }
        throw .unproven
    }
}
