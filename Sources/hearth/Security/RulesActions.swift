// The actions of `hearth rules` on the rules that a data directory keeps.

import Authorization
import Basics
import DocumentJSON
import DocumentModel
import EmbeddedEngine
import FirestoreMessages
import HearthClient
import Server

/// Applies rules, takes them back, lists and prints them.
enum RulesActions {
    static let flags: [any FlagDeclaration] =
        [IndexesCommand.data, ServerFlags.address, ServerFlags.timeout, ServerFlags.tls, ServerFlags.authorities]

    /// - Parameters:
    ///   - text: rules without an error.
    ///   - file: where they come from.
    static func apply(_ text: String, of file: String, _ arguments: ParsedArguments) async throws {
        let place = try RulesPlace(arguments)
        let answer = try await place.ask(.adminApplyRules, ApplyRulesRequest(text: text)) {
            keeper throws(RequestError) in try keeper.apply(text)
        }
        try show(answer, "\(file) is")
    }

    static func rollback(_ arguments: ParsedArguments) async throws {
        let answer = try await RulesPlace(arguments).ask(.adminRollbackRules, EmptyMessage()) {
            keeper throws(RequestError) in try keeper.rollback()
        }
        try show(answer, "the rules before are")
    }

    /// - Parameter subject: the rules, with a verb.
    private static func show(_ answer: ApplyRulesResponse, _ subject: String) throws {
        let number = answer.rules.number
        let start = answer.security.isEmpty ? ", from the next start of a server on" : ""
        if answer.changed {
            try StandardOutput.print("\(subject) in force as number \(number)\(start)")
        } else {
            try StandardOutput.print("\(subject) in force already as number \(number)\(start); nothing has changed")
        }
        if answer.closed {
            try StandardOutput.print(
                "The server was open. It is closed now: callers without a credential may do what the rules permit.")
        }
        if answer.security == "insecure" {
            try StandardOutput.print("The server runs with --insecure, so it does not ask the rules.")
        }
    }

    static func list(_ arguments: ParsedArguments) async throws {
        let answer = try await RulesPlace(arguments).ask(.adminListRules, EmptyMessage(), changes: false) {
            keeper throws(RequestError) in try keeper.list()
        }
        if arguments[RulesCommand.json] { return try printObjects(answer) }
        for rules in answer.rules {
            let isInForce = rules == answer.rules.last && answer.file.isEmpty
            let mark = isInForce ? "\tin force" : ""
            try StandardOutput.print(
                "\(rules.number)\t\(time(rules.timeMicroseconds))\t\(rules.byteCount) bytes\(mark)")
        }
        if !answer.file.isEmpty { try StandardOutput.print("\(answer.file) (--rules) is in force") }
    }

    private static func printObjects(_ answer: ListRulesResponse) throws {
        for rules in answer.rules {
            let object = JSONValue.object([
                "number": .integer(rules.number), "time": .string(time(rules.timeMicroseconds)),
                "bytes": .integer(rules.byteCount),
                "inForce": .boolean(rules == answer.rules.last && answer.file.isEmpty),
            ])
            try StandardOutput.print(object.json)
        }
        guard !answer.file.isEmpty else { return }
        try StandardOutput.print(JSONValue.object(["file": .string(answer.file), "inForce": .boolean(true)]).json)
    }

    /// Prints the text of rules as it was given.
    ///
    /// - Parameter number: a number of the list; nil for the newest.
    static func show(_ number: String?, _ arguments: ParsedArguments) async throws {
        guard let wanted = number.map({ Int64($0) }) ?? 0, number == nil || wanted > 0 else {
            throw UsageError(message: "\"\(number ?? "")\" is not a number of hearth rules list")
        }
        let answer = try await RulesPlace(arguments).ask(
            .adminGetRules, GetRulesRequest(number: wanted), changes: false
        ) { keeper throws(RequestError) in try keeper.get(wanted) }
        try StandardOutput.write(Array(answer.text.utf8))
    }

    /// A moment in whole seconds.
    private static func time(_ microseconds: Int64) -> String {
        let seconds = microseconds >= 0 ? microseconds / 1_000_000 : (microseconds - 999_999) / 1_000_000
        return TimestampValue(seconds: seconds, nanoseconds: 0).rfc3339
    }
}

/// Where rules are kept: a data directory, asked through the server that uses it or else changed itself, or what a
/// server at an address uses.
private struct RulesPlace {
    private let arguments: ParsedArguments
    /// Nil for a directory.
    private let address: String?

    init(_ arguments: ParsedArguments) throws {
        self.arguments = arguments
        address = try IndexesCommand.asksAddress(arguments) ? arguments[ServerFlags.address] : nil
    }

    /// Asks the server, or `keeper` if none runs on the directory.
    ///
    /// - Parameter changes: whether the call changes rules; then no server may start meanwhile.
    func ask<Reply: FirestoreMessage & Sendable>(
        _ method: FirestoreMessages.Method, _ request: some FirestoreMessage & Sendable, changes: Bool = true,
        _ offline: (RulesKeeper) throws(RequestError) -> Reply
    ) async throws -> Reply {
        if let address {
            let isRepeatable = method != .adminRollbackRules
            return try await ReadingFlags.withClient(arguments, of: address) { client in
                try await client.administer(method, request, isRepeatable: isRepeatable, as: Reply.self)
            }
        }
        let directory = arguments[IndexesCommand.data]
        try PathWords.checkAccess(directory)
        do throws(AdminClient.Failure) {
            return try AdminClient.call(method, request, directory, as: Reply.self)
        } catch {
            guard case .noServer = error else { throw error }
        }
        if changes, try ClusterStores.isCache(directory) {
            throw CommandFailure(
                "\(directory) is a cache of a cluster, whose servers have their rules in common: ask one that runs")
        }
        try PathWords.checkDataDirectory(directory)
        guard changes else { return try offline(RulesKeeper(RulesHistory(dataDirectory: directory))) }
        return try EmbeddedEngine.whileUnused(directory) { spareSpace in
            try offline(RulesKeeper(RulesHistory(dataDirectory: directory, spareSpace: spareSpace)))
        }
    }
}
