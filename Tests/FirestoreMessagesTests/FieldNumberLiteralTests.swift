// Field numbers and tags have one home each: this looks for literals anywhere else in what is shipped.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct FieldNumberLiteralTests {
    /// Forms in which code gives a field number or a tag.
    private static let patterns = [
        #"\b(field|tag|fieldNumber): ?(0[xX][0-9A-Fa-f]+|[0-9]+)\b"#,
        #"\b(appendField|writeIfSet|appendTag|appendTimestamp|appendFieldReference)\((0[xX])?[0-9]"#,
        #"[fF]ieldNumber ?[!=]= ?[0-9]"#,
        #"append\(byte: 0[xX](08|10|0[aA]|12|1[aA]|22)\)"#,
    ]

    @Test
    func `Sources, tools and benchmarks name every field`() throws {
        let patterns = try Self.patterns.map { try Regex($0) }
        var files = 0
        for folder in ["Sources", "Tools", "Benchmarks"] {
            let paths = FileManager.default.enumerator(atPath: Repository.url(folder).path)
            while let path = paths?.nextObject() as? String {
                let isHome = path.hasPrefix("FirestoreMessages/") || path.hasPrefix("DocumentModel/")
                guard path.hasSuffix(".swift"), !path.contains(".build/"), !isHome else { continue }
                files += 1
                let text = try String(contentsOf: Repository.url("\(folder)/\(path)"), encoding: .utf8)
                check(text, "\(folder)/\(path)", patterns)
            }
        }
        expect(files > 300)
    }

    private func check(_ text: String, _ path: String, _ patterns: [Regex<AnyRegexOutput>]) {
        var switches = false
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let code = line.prefix(upTo: line.firstRange(of: "//")?.lowerBound ?? line.endIndex)
            if code.contains("switch ") { switches = code.contains("ieldNumber {") }
            let isCase = switches && code.contains(/^ *case [0-9]/)
            let isLiteral = isCase || patterns.contains { code.contains($0) }
            expect(!isLiteral, "\(path):\(number + 1): name the field by FieldNumber: \(code)")
        }
    }
}
