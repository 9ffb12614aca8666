// The public conformance cases of Firestore's client libraries (Conformance/Vectors), read from their JSON.

import Foundation
import Testing

@testable import FirebaseFirestore

/// One case: a call, and the request that it must send, or that it must fail.
struct ConformanceCase: Decodable, CustomTestStringConvertible, Sendable {
    struct Path: Decodable, Sendable { var field: [String] }

    struct Option: Decodable, Sendable {
        var all: Bool?
        var fields: [Path]?
    }

    struct Precondition: Decodable, Sendable {
        var exists: Bool?
        var updateTime: String?
    }

    /// A call of a write method.
    struct Write: Decodable, Sendable {
        var docRefPath: String
        var option: Option?
        var jsonData: String?
        var fieldPaths: [Path]?
        var jsonValues: [String]?
        var precondition: Precondition?
        var request: JSONValue?
        var isError: Bool?
    }

    struct Snapshot: Decodable, Sendable {
        var path: String
        var jsonData: String
    }

    struct Cursor: Decodable, Sendable {
        var docSnapshot: Snapshot?
        var jsonValues: [String]?
    }

    struct Condition: Decodable, Sendable {
        var path: Path
        var op: String
        var jsonValue: String
    }

    struct Order: Decodable, Sendable {
        var path: Path
        var direction: String
    }

    struct Clause: Decodable, Sendable {
        var select: JSONValue?
        var `where`: Condition?
        var orderBy: Order?
        var offset: Int?
        var limit: Int?
        var startAt: Cursor?
        var startAfter: Cursor?
        var endAt: Cursor?
        var endBefore: Cursor?
    }

    struct Query: Decodable, Sendable {
        var collPath: String
        var clauses: [Clause]?
        var query: JSONValue?
        var isError: Bool?
    }

    struct Change: Decodable, Sendable {
        var kind: String
        var doc: JSONValue
        /// -1 stands for no index, a missing one for 0.
        var oldIndex: Int?
        var newIndex: Int?
    }

    struct ExpectedSnapshot: Decodable, Sendable {
        var docs: [JSONValue]?
        var changes: [Change]?
    }

    struct Listen: Decodable, Sendable {
        var responses: [JSONValue]
        var snapshots: [ExpectedSnapshot]?
        var isError: Bool?
    }

    var description: String
    var create: Write?
    var set: Write?
    var update: Write?
    var updatePaths: Write?
    var delete: Write?
    var query: Query?
    var listen: Listen?

    /// The name of the file without its extension.
    private(set) var name = ""

    private enum CodingKeys: CodingKey {
        case description, create, set, update, updatePaths, delete, query, listen
    }

    var testDescription: String { name }

    /// The call of a write method, whichever it is.
    var write: Write? { create ?? set ?? update ?? updatePaths ?? delete }

    var isError: Bool { write?.isError ?? query?.isError ?? listen?.isError ?? false }

    /// The case of a file.
    static func named(_ name: String) throws -> ConformanceCase {
        struct File: Decodable { var tests: [ConformanceCase] }
        let file = try folder().appendingPathComponent("\(name).json")
        var found = try JSONDecoder().decode(File.self, from: Data(contentsOf: file)).tests[0]
        found.name = name
        return found
    }

    /// Every case, by name.
    static let all: [ConformanceCase] = {
        do {
            let files = try FileManager.default.contentsOfDirectory(atPath: folder().path)
            return try files.filter { $0.hasSuffix(".json") }.sorted().map { try named(String($0.dropLast(5))) }
        } catch {
            fatalError("the conformance cases cannot be read: \(error)")
        }
    }()

    private static func folder() throws -> URL {
        guard let folder = Bundle.module.url(forResource: "Vectors", withExtension: nil) else {
            throw CocoaError(.fileNoSuchFile)
        }
        return folder
    }
}

/// A JSON value, in which whole numbers are integers.
enum JSONValue: Codable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case double(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .double(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .double(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }

    /// The JSON text.
    func text() throws -> [UInt8] { Array(try JSONEncoder().encode(self)) }

    /// What a JSON text of a case stands for: the data that a program hands over, sentinels included.
    static func data(_ text: String) throws -> Any {
        try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8)).data
    }

    private var data: Any {
        switch self {
        case .null: return NSNull()
        case .bool(let value): return value
        case .integer(let value): return value
        case .double(let value): return value
        case .string("Delete"): return FieldValue.delete()
        case .string("ServerTimestamp"): return FieldValue.serverTimestamp()
        case .string("NaN"): return Double.nan
        case .string(let value): return value
        case .object(let members): return members.mapValues(\.data)
        case .array(let elements):
            let rest = elements.dropFirst().map(\.data)
            switch elements.first {
            case .string("ArrayUnion"): return FieldValue.arrayUnion(rest)
            case .string("ArrayRemove"): return FieldValue.arrayRemove(rest)
            default: return elements.map(\.data)
            }
        }
    }
}
