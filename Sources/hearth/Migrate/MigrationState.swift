// The state of a migration, kept in a file so that an interrupted one can continue.

import Basics
import DocumentJSON
import DocumentModel

/// Everything before the positions of the parts is at the target, and all changes before the token.
struct MigrationState: Equatable, Sendable {
    /// The source and the target, in full; a migration that continues must have the same ones.
    var source: String
    var target: String
    /// What the parts are read at; nil if the source cannot read earlier states.
    var readTime: TimestampValue?
    /// A time before the first read: changes after it are listened to.
    var listenFrom: TimestampValue
    /// The parts of the names; none before the source was looked at.
    var parts: [Part] = []
    /// The ids of the collections of all documents that were seen.
    var groups: Set<String> = []
    /// Where the changes continue; empty before the first.
    var token: [UInt8] = []

    /// Documents between two names.
    struct Part: Equatable, Sendable {
        /// Full names of the source; nil for the first and the last document.
        var start: String?
        var end: String?
        /// The document copied last.
        var last: String?
        var isDone = false
        var documents = 0
    }

    var documents: Int { parts.reduce(0) { $0 + $1.documents } }
    var isCopied: Bool { !parts.isEmpty && parts.allSatisfy(\.isDone) }

    /// The state kept at `path`, or nil where there is none.
    static func read(from path: String) throws -> MigrationState? {
        guard let text = try InputFile.contentsIfPresent(of: path) else { return nil }
        guard let object = try? JSONObject(text), let state = try? MigrationState(object) else {
            throw CommandFailure("\(path) is not the state of a migration; delete it to begin again")
        }
        return state
    }

    /// Replaces the file in one step, so that an interruption, a power cut too, leaves the old state or the new one.
    func write(to path: String) throws { try ReplacingFile.replace(path, with: Array(json.jsonLines.utf8), .bytes) }
}

extension MigrationState {
    fileprivate init?(_ object: JSONObject) throws {
        guard let source = try object.string("source"), let target = try object.string("target"),
            let listenFrom = try Self.time(object, "listenFrom"), let parts = try object.objects("parts"),
            let groups = try object.objects("groups"), let token = try object.string("token")
        else { return nil }
        self.init(
            source: source, target: target, readTime: try Self.time(object, "readTime"), listenFrom: listenFrom)
        self.parts = try parts.map { part in
            Part(
                start: try part.string("start"), end: try part.string("end"), last: try part.string("last"),
                isDone: try part.boolean("isDone") ?? false, documents: try part.integer("documents") ?? 0)
        }
        self.groups = Set(try groups.compactMap { try $0.string("id") })
        let text = Array(token.utf8)
        guard let bytes = Base64.decode(text.span) else { return nil }
        self.token = bytes
    }

    private static func time(_ object: JSONObject, _ name: String) throws -> TimestampValue? {
        guard let text = try object.string(name) else { return nil }
        let bytes = Array(text.utf8)
        return RFC3339.timestamp(bytes.span)
    }

    private var json: JSONValue {
        func text(_ value: String?) -> JSONValue { value.map(JSONValue.string) ?? .null }
        var encoded: [UInt8] = []
        Base64.append(token.byteSpan, to: &encoded)
        return .object([
            "source": .string(source), "target": .string(target), "readTime": text(readTime?.rfc3339),
            "listenFrom": .string(listenFrom.rfc3339),
            "parts": .array(
                parts.map { part in
                    .object([
                        "start": text(part.start), "end": text(part.end), "last": text(part.last),
                        "isDone": .boolean(part.isDone), "documents": .integer(Int64(part.documents)),
                    ])
                }),
            "groups": .array(groups.sorted().map { .object(["id": .string($0)]) }),
            "token": .string(String(decoding: encoded, as: UTF8.self)),
        ])
    }
}

/// The state of a migration under way: several tasks change it, and the file follows.
actor MigrationLedger {
    private(set) var state: MigrationState
    private let path: String
    private var savedAt = ContinuousClock().now
    private var line: ProgressLine
    private var changes = 0

    init(_ state: MigrationState, path: String, _ line: ProgressLine) {
        self.state = state
        self.path = path
        self.line = line
    }

    func begin(_ state: MigrationState) throws {
        self.state = state
        try save()
    }

    /// Notes that the documents of a part until `last` are at the target.
    func copied(_ part: Int, until last: String?, _ documents: Int, _ groups: Set<String>, isDone: Bool) throws {
        state.parts[part].last = last ?? state.parts[part].last
        state.parts[part].documents += documents
        state.parts[part].isDone = isDone
        state.groups.formUnion(groups)
        line.update(documents: state.documents, bytes: 0, totalBytes: nil)
        try saveIfDue(isDone)
    }

    /// The source cannot read the state of the read time any more: what is left is read at another one.
    ///
    /// - Parameter old: the time at which a read failed.
    /// - Returns: the new time.
    func renewReadTime(after old: TimestampValue, _ new: TimestampValue) throws -> TimestampValue {
        guard state.readTime == old else { return state.readTime ?? new }
        CommandRouter.complain(
            "the source does not have the state of \(old.rfc3339) any more; the rest is copied as of "
                + "\(new.rfc3339), and changes are read from \(state.listenFrom.rfc3339) on")
        state.readTime = new
        try save()
        return new
    }

    /// Notes that all changes before the token are at the target.
    /// - Parameter groups: those that are followed.
    func followed(to token: [UInt8], _ count: Int, _ groups: Set<String>) throws {
        changes += count
        let areNew = !groups.isSubset(of: state.groups)
        state.groups.formUnion(groups)
        if !token.isEmpty { state.token = token }
        try saveIfDue(areNew)
    }

    /// The number of changes since this process began.
    var changeCount: Int { changes }

    func clearLine() { line.clear() }

    private func saveIfDue(_ isDue: Bool) throws {
        if isDue || ContinuousClock().now - savedAt > .seconds(1) { try save() }
    }

    func save() throws {
        savedAt = ContinuousClock().now
        try state.write(to: path)
    }
}
