// Random documents both ways: bytes to a line and back, and lines as foreign programs write them to canonical bytes.

import Basics
import DocumentJSON
import DocumentModel
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct RandomLineTests {
    private static let database = "projects/p/databases/(default)"
    private static let seeds: [UInt64] = [.random(in: 0 ... .max), 1, 2, 3]

    /// Random fields; some of their maps look like extended forms.
    private static func fields(_ random: inout RandomDocuments) -> MapValue {
        var fields = random.fields(depth: 4)
        if random.generator.oneIn(3) {
            let name = random.generator.pick(["$", "$map", "$bytes", "$double", "$vector", "$other", "plain"])
            fields = MapValue([("m", .map([name: .map(fields)])), (name, random.value())])
        }
        if random.generator.oneIn(4) {
            let paths = ["projects/a", "projects/q/databases/r/documents/c/d", "c/projects"]
            let path = random.generator.pick(paths)
            fields = MapValue([("r", .reference("\(database)/documents/\(path)")), ("f", .map(fields))])
        }
        return fields
    }

    @Test(arguments: seeds)
    func `A random document comes back from its line byte for byte`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        var parser = JSONLineParser(database: Self.database)
        var writer = JSONLineWriter(database: Self.database)
        for round in 0..<500 {
            let document = Self.fields(&random).documentBytes
            let name = random.id()
            let line = try writer.line(name: name, fields: document.span.bytes)
            try expectEqual(parser.parse(line.span), .path(name), "seed \(seed), round \(round)")
            let text = String(decoding: line, as: UTF8.self)
            try #require(parser.documentBytes == document, "seed \(seed), round \(round): \(text)")
            try #require(JSONLineCheck.violation(line) == nil, "seed \(seed), round \(round)")
        }
    }

    @Test(arguments: seeds)
    func `A document written in any JSON style has the same bytes`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        var parser = JSONLineParser(database: Self.database)
        for round in 0..<500 {
            let fields = Self.fields(&random)
            var style = JSONStyle(database: Self.database, generator: SeededGenerator(seed: random.generator.next()))
            let line = style.members(of: fields)
            try expectEqual(parser.parse(Array(line.utf8).span), .none)
            try #require(parser.documentBytes == fields.documentBytes, "seed \(seed), round \(round): \(line)")
        }
    }

    @Test
    func `Every saved input of the fuzzer keeps every property`() throws {
        try FuzzCorpus.expectKept("JSONLine", over: 50, JSONLineCheck.violation)
    }
}

/// Writes values as other programs may: any white space, order of members, escapes and forms of numbers.
private struct JSONStyle {
    let database: String
    var generator: SeededGenerator

    private mutating func space() -> String {
        generator.oneIn(3) ? generator.pick([" ", "\t", "\r", "  "]) : ""
    }

    mutating func members(of map: MapValue) -> String {
        let members = map.entries.shuffled(using: &generator).map { entry in
            space() + string(entry.key) + space() + ":" + space() + text(entry.value) + space()
        }
        return "{" + (members.isEmpty ? space() : members.joined(separator: ",")) + "}"
    }

    mutating func text(_ value: Value) -> String {
        switch value {
        case .null: return "null"
        case .boolean(let boolean): return boolean ? "true" : "false"
        case .integer(let integer): return integer == 0 && generator.oneIn(2) ? "-0" : String(integer)
        case .double(let double): return number(double)
        case .timestamp(let time): return form("timestamp", "\"\(timestamp(time))\"")
        case .string(let text): return string(text)
        case .bytes(let bytes): return form("bytes", string(Data(bytes).base64EncodedString()))
        case .reference(let name): return form("reference", string(reference(name)))
        case .geoPoint(let point): return form("geoPoint", "[\(number(point.latitude)),\(number(point.longitude))]")
        case .array(let elements):
            return "[" + elements.map { space() + text($0) + space() }.joined(separator: ",") + "]"
        case .map(let map):
            let looksExtended = map.count == 1 && map.entries[0].key.hasPrefix("$")
            return looksExtended ? form("map", members(of: map)) : members(of: map)
        }
    }

    /// `{"$name": text}`
    private mutating func form(_ name: String, _ text: String) -> String {
        "{\(space())\"$\(name)\"\(space()):\(space())\(text)\(space())}"
    }

    private mutating func number(_ double: Double) -> String {
        if double.isNaN { return form("double", "\"NaN\"") }
        if double.isInfinite { return form("double", double < 0 ? "\"-Infinity\"" : "\"Infinity\"") }
        return generator.oneIn(2) ? "\(double)" : String(format: generator.oneIn(2) ? "%.17e" : "%.17E", double)
    }

    /// A relative path where that is not a full name itself, or the full name.
    private mutating func reference(_ name: String) -> String {
        let root = "\(database)/documents/"
        guard name.hasPrefix(root), generator.oneIn(2) else { return name }
        let path = String(name.dropFirst(root.count))
        return path.hasPrefix("projects/") ? name : path
    }

    /// A time with up to nine digits and any offset.
    private mutating func timestamp(_ time: TimestampValue) -> String {
        // An offset must not lead out of years 1 to 9999.
        let isInside = (-62_000_000_000...253_000_000_000).contains(time.seconds)
        let offset = isInside ? generator.below(2 * 24 * 60 - 1) - (24 * 60 - 1) : 0
        var text: [UInt8] = []
        RFC3339.append(TimestampValue(seconds: time.seconds + Int64(offset * 60), nanoseconds: 0), to: &text)
        var result = String(decoding: text.dropLast(), as: UTF8.self)
        if generator.oneIn(2) { result = result.replacing("T", with: "t") }
        // Digits below a microsecond are cut off.
        result += "." + String(format: "%06d", time.nanoseconds / 1_000) + generator.pick(["", "9", "999", "0000"])
        if offset == 0 { return result + generator.pick(["Z", "z", "+00:00", "-00:00"]) }
        return result + String(format: "%@%02d:%02d", offset < 0 ? "-" : "+", abs(offset) / 60, abs(offset) % 60)
    }

    private mutating func string(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += generator.oneIn(2) ? "\\\"" : "\\u0022"
            case "\\": result += "\\\\"
            case "/" where generator.oneIn(2): result += "\\/"
            case "\u{0}"..."\u{1f}": result += escape(scalar)
            default: if generator.oneIn(5) { result += escape(scalar) } else { result.unicodeScalars.append(scalar) }
            }
        }
        return result + "\""
    }

    private mutating func escape(_ scalar: Unicode.Scalar) -> String {
        String(scalar).utf16.map { String(format: generator.oneIn(2) ? "\\u%04x" : "\\u%04X", Int($0)) }.joined()
    }
}
