// Coverage in the form of the emulator's `:ruleCoverage`.

internal import Basics
internal import DocumentJSON
package import Expressions

extension Ruleset {
    /// The rules and the outcomes of each expression as JSON, which testing tools of Firebase read:
    ///
    ///     {"rules": {"files": [{"name": …, "content": …}]},
    ///      "report": [{"sourcePosition": …, "values": [{"value": …, "count": 1}], "children": […]}]}
    ///
    /// - Parameters:
    ///   - coverage: counted by judgements of this ruleset.
    ///   - name: the file name of the rules.
    package func coverageJSON(_ coverage: ExpressionCoverage, name: String) -> String {
        let report = roots.map { CoverageReport(ruleset: self, coverage: coverage).json(of: $0) }
        let file = "{\"name\":\(JSONText.quoted(name)),\"content\":\(JSONText.quoted(source.text))}"
        return "{\"rules\":{\"files\":[\(file)]},\"report\":[\(report.joined(separator: ","))]}"
    }

    /// The conditions of all statements, and the variables and results of all functions.
    var roots: [ExpressionID] {
        let conditions = statements.compactMap(\.condition)
        return conditions + functionRoots
    }
}

private struct CoverageReport {
    let ruleset: Ruleset
    let coverage: ExpressionCoverage

    /// The report of an expression and of those within it.
    func json(of id: ExpressionID) -> String {
        var members = ["\"sourcePosition\":\(position(ruleset.range(of: id)))"]
        let values = coverage.outcomes(of: id).map { outcome in
            "{\"value\":\(value(outcome.outcome, id)),\"count\":\(outcome.count)}"
        }
        if !values.isEmpty { members.append("\"values\":[\(values.joined(separator: ","))]") }
        let children = ruleset.tree[id].operands.map { json(of: $0) }
        if !children.isEmpty { members.append("\"children\":[\(children.joined(separator: ","))]") }
        return "{\(members.joined(separator: ","))}"
    }

    private func position(_ range: SourceRange) -> String {
        let start = ruleset.source.position(of: range.start)
        return "{\"line\":\(start.line),\"column\":\(start.column),\"currentOffset\":\(range.start),"
            + "\"endOffset\":\(range.end)}"
    }

    private func value(_ outcome: ExpressionCoverage.Outcome, _ id: ExpressionID) -> String {
        switch outcome {
        case .value(let operand): OperandJSON.json(operand)
        case .failed(let message):
            "{\"undefined\":{\"sourcePosition\":\(position(ruleset.range(of: id))),"
                + "\"causeMessage\":\(JSONText.quoted(message))}}"
        }
    }
}

/// Values of the rules language as the emulator writes them.
enum OperandJSON {
    /// Elements of lists and entries of maps that are written.
    private static let elementsMax = 100
    private static let depthMax = 8

    static func json(_ operand: Operand, depth: Int = 0) -> String {
        if depth > depthMax { return "{}" }
        switch operand {
        case .absent: return "{\"undefined\":{}}"
        case .null: return "{\"nullValue\":null}"
        case .boolean(let value): return "{\"boolValue\":\(value)}"
        case .integer(let value): return "{\"intValue\":\"\(value)\"}"
        case .double(let value):
            return "{\"floatValue\":\(value.isFinite ? "\(value)" : "\"\(DoubleText.write(value))\"")}"
        case .string(let text): return "{\"stringValue\":\(JSONText.quoted(text))}"
        case .bytes(let bytes):
            var text: [UInt8] = []
            Base64.append(bytes.byteSpan, to: &text)
            return "{\"bytesValue\":\"\(String(decoding: text, as: UTF8.self))\"}"
        case .timestamp(let time):
            var text: [UInt8] = []
            RFC3339.append(time, to: &text)
            return "{\"timestampValue\":\"\(String(decoding: text, as: UTF8.self))\"}"
        case .geoPoint(let point):
            return "{\"latlngValue\":{\"latitude\":\(point.latitude),\"longitude\":\(point.longitude)}}"
        case .reference, .object: return objectJSON(operand, depth: depth)
        case .list, .encodedList:
            return "{\"listValue\":\(list(operand.elements ?? [], depth: depth))}"
        case .map, .encodedMap:
            let entries = (operand.entries ?? [:]).entries.prefix(elementsMax).map { entry in
                "\(JSONText.quoted(entry.key)):\(json(entry.value, depth: depth + 1))"
            }
            let fields = entries.isEmpty ? "" : "\"fields\":{\(entries.joined(separator: ","))}"
            return "{\"mapValue\":{\(fields)}}"
        }
    }

    private static func list(_ elements: some Collection<Operand>, depth: Int) -> String {
        let values = elements.prefix(elementsMax).map { json($0, depth: depth + 1) }
        return values.isEmpty ? "{}" : "{\"values\":[\(values.joined(separator: ","))]}"
    }

    private static func literals(_ texts: [String]) -> String {
        texts.map { "{\"simple\":\(JSONText.quoted($0))}" }.joined(separator: ",")
    }

    private static func objectJSON(_ operand: Operand, depth: Int) -> String {
        if let path = RulesPath.from(operand) {
            let segments = path.segments.map { segment in
                switch segment {
                case .literal(let text): "{\"simple\":\(JSONText.quoted(text))}"
                case .capture(let name, let value):
                    "{\"capture\":{\"variableName\":\(JSONText.quoted(name))"
                        + (value.map { ",\"boundValue\":\(JSONText.quoted($0))" } ?? "") + "}}"
                case .glob(let name, let values):
                    "{\"globCapture\":{\"variableName\":\(JSONText.quoted(name))"
                        + (values.map { ",\"boundValue\":{\"segments\":[\(literals($0))]}" } ?? "") + "}}"
                }
            }
            return "{\"pathValue\":{\"segments\":[\(segments.joined(separator: ","))]}}"
        }
        if let duration = RulesDuration.from(operand) {
            var fraction: [UInt8] = []
            RFC3339.appendFraction(Int(duration.nanoseconds.magnitude), to: &fraction)
            let sign = duration.total < 0 ? "-" : ""
            let text = "\(sign)\(duration.seconds.magnitude)\(String(decoding: fraction, as: UTF8.self))s"
            return "{\"durationValue\":\"\(text)\"}"
        }
        if let set = RulesSet.from(operand) {
            return "{\"setValue\":\(list(set.members.map(\.operand), depth: depth))}"
        }
        if let difference = MapDifference.from(operand) {
            let statuses = [
                ("ADDED", difference.added), ("REMOVED", difference.removed), ("CHANGED", difference.changed),
                ("UNCHANGED", difference.unchanged),
            ].flatMap { status, keys in keys.map { "\(JSONText.quoted($0)):\"\(status)\"" } }
            return "{\"mapDiffValue\":{\"keyStatuses\":{\(statuses.prefix(elementsMax).joined(separator: ","))}}}"
        }
        return "{\"constraintValue\":{}}"
    }
}
