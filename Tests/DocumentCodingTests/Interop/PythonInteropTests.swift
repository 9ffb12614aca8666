// Against the official Python message classes (google-cloud-firestore from PyPI): they read our bytes, and we read what
// they serialize, for random documents of every type. The Python side is Tests/Interop/interop.py.

import DocumentCoding
import DocumentModel
import Foundation
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20))) struct PythonInteropTests {
    @Test("Python's message classes read our documents", arguments: [21, 22] as [UInt64])
    func pythonReadsOurs(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        var documents: [MapValue] = []
        var input: [[UInt8]] = []
        for _ in 0..<200 {
            let fields = random.fields(depth: 5).withFiniteDoubles
            documents.append(fields)
            input.append(try FirestoreEncoder().documentBytes(CodableValue(.map(fields))))
        }
        let output = try PythonSide.run(["echo"], input: input)
        try #require(output.count == 2 * documents.count)
        for (number, fields) in documents.enumerated() {
            try expectEqual(
                Description(json: output[2 * number + 1]), Description(fields: fields),
                "document \(number) of seed \(seed)")
            // Serialized with sorted maps theirs are the same bytes; their order of keys is not that of UTF-8 beyond
            // the first plane, and their LatLng writes minus zero.
            let theirBytes = output[2 * number]
            let theirs = try MapValue(documentBytes: theirBytes.span.bytes)
            expectEqual(theirs, fields, "document \(number) of seed \(seed)")
        }
    }

    @Test("We read the documents of Python's message classes", arguments: [31, 32])
    func weReadPythons(seed: Int) throws {
        let output = try PythonSide.run(["make", "\(seed)", "200"], input: [])
        try #require(output.count == 400)
        for number in 0..<200 {
            let bytes = output[2 * number]
            let expected = try Description(json: output[2 * number + 1])
            let fields = try MapValue(documentBytes: bytes.span.bytes)
            try expectEqual(Description(fields: fields), expected, "document \(number) of seed \(seed)")
            let decoded = try FirestoreDecoder().decode(CodableValue.self, fromDocumentBytes: bytes.span.bytes)
            expectEqual(decoded.value, .map(fields.preferringIntegers), "document \(number) of seed \(seed)")
            // And encoded again they are canonical, with the same meaning.
            let finite = fields.withFiniteDoubles
            let again = try FirestoreEncoder().documentBytes(CodableValue(.map(finite)))
            try expectEqual(MapValue(documentBytes: again.span.bytes), finite)
        }
    }
}

/// A document in the notation of describe() in interop.py, which keeps every bit.
struct Description: Equatable {
    /// Sorted JSON text.
    let text: String

    init(json: [UInt8]) throws {
        text = try Self.sortedText(JSONSerialization.jsonObject(with: Data(json)))
    }

    init(fields: MapValue) throws {
        text = try Self.sortedText(Self.describe(fields))
    }

    private static func sortedText(_ object: Any) throws -> String {
        String(decoding: try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys]), as: UTF8.self)
    }

    private static func describe(_ fields: MapValue) -> [Any] {
        let entries = fields.entries.map { (hex(Array($0.key.utf8)), describe($0.value)) }
        return entries.sorted { $0.0 < $1.0 }.map { [$0.0, $0.1] as [Any] }
    }

    private static func describe(_ value: Value) -> [Any] {
        switch value {
        case .null: ["null", NSNull()]
        case .boolean(let boolean): ["boolean", boolean]
        case .integer(let integer): ["integer", "\(integer)"]
        case .double(let double): ["double", double.isNaN ? "nan" : hex(double)]
        case .timestamp(let time): ["timestamp", ["\(time.seconds)", "\(time.nanoseconds)"]]
        case .string(let text): ["string", hex(Array(text.utf8))]
        case .bytes(let bytes): ["bytes", hex(bytes)]
        case .reference(let name): ["reference", hex(Array(name.utf8))]
        case .geoPoint(let point): ["geo", [hex(point.latitude), hex(point.longitude)]]
        case .array(let elements): ["array", elements.map(describe)]
        case .map(let map): ["map", describe(map)]
        }
    }

    private static func hex(_ double: Double) -> String {
        hex(withUnsafeBytes(of: double.bitPattern.bigEndian) { Array($0) })
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

/// Runs interop.py with messages on its standard input, and collects those of its standard output.
enum PythonSide {
    struct Missing: Error, CustomStringConvertible {
        let interpreter: String
        let detail: String
        var description: String {
            """
            The interop tests need Python with google-cloud-firestore (tried \(interpreter)): \(detail)
            Install it at the root of the package with
                python3 -m venv .venv && .venv/bin/pip install google-cloud-firestore
            or name an interpreter that has it in HEARTH_PYTHON.
            """
        }
    }

    static func run(_ arguments: [String], input: [[UInt8]]) throws -> [[UInt8]] {
        let interpreter = Repository.python
        guard FileManager.default.isExecutableFile(atPath: interpreter) else {
            throw Missing(interpreter: interpreter, detail: "there is no such program.")
        }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "hearth-interop-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        // Files, because both sides would block on pipes that the other does not empty.
        let inputFile = folder.appendingPathComponent("in")
        let outputFile = folder.appendingPathComponent("out")
        let errorFile = folder.appendingPathComponent("err")
        try Data(input.flatMap { withUnsafeBytes(of: UInt32($0.count).bigEndian, Array.init) + $0 }).write(
            to: inputFile)
        for file in [outputFile, errorFile] { try Data().write(to: file) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: interpreter)
        let script = Repository.url("Tests/Interop/interop.py")
        process.arguments = [script.path] + arguments
        process.standardInput = try FileHandle(forReadingFrom: inputFile)
        process.standardOutput = try FileHandle(forWritingTo: outputFile)
        process.standardError = try FileHandle(forWritingTo: errorFile)
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Missing(
                interpreter: interpreter, detail: String(decoding: try Data(contentsOf: errorFile), as: UTF8.self))
        }
        return try messages(in: [UInt8](Data(contentsOf: outputFile)))
    }

    private static func messages(in bytes: [UInt8]) throws -> [[UInt8]] {
        var messages: [[UInt8]] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(4)
            try #require(count <= rest.count)
            messages.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        return messages
    }
}
