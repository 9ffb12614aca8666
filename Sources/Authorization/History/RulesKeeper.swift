package import Basics
package import FirestoreMessages
internal import SecurityRules
internal import Storage
internal import Synchronization

/// Changes the rules that a data directory keeps, and puts them in force in the server of the directory, if one runs.
/// Thread-safe. Every function reads files and may block.
///
///     apply(text) ──► compile ──► RulesHistory.append ──► Authorization.apply ──► answer
package final class RulesKeeper: Sendable {
    private let history: RulesHistory
    private let authorization: Authorization?
    private let file: String?
    /// Held during a change: changes are in force in the order in which they are kept.
    private let turn = Mutex<Void>(())

    /// - Parameters:
    ///   - authorization: the access control of the server; nil if no server runs.
    ///   - file: the file of `--rules`, which is in force instead of what is kept; nil without one.
    package init(_ history: RulesHistory, authorization: Authorization? = nil, file: String? = nil) {
        self.history = history
        self.authorization = authorization
        self.file = file
    }

    /// Keeps rules and puts them in force. The text that is in force already changes nothing.
    ///
    /// - Throws: `INVALID_ARGUMENT` for rules with an error, `FAILED_PRECONDITION` if the server has rules of a file,
    ///   or if the disk fails. Nothing has changed then, except what ``RulesHistory/append(_:)`` describes.
    package func apply(_ text: String) throws(RequestError) -> ApplyRulesResponse {
        try turn.withLock { _ throws(RequestError) in
            try checkNoFile()
            let ruleset = try Self.compile(text)
            if let number = unchanged(text) { return answer(history.entry(number), changed: false, wasOpen: false) }
            return try putInForce(text, ruleset)
        }
    }

    /// Applies the rules that were in force before the newest ones: they become the newest.
    ///
    /// - Throws: `FAILED_PRECONDITION` if there are none, if they cannot be read or have an error, and as for
    ///   ``apply(_:)``.
    package func rollback() throws(RequestError) -> ApplyRulesResponse {
        try turn.withLock { _ throws(RequestError) in
            try checkNoFile()
            guard let number = try Self.reading({ () throws(StorageError) in try history.previous() }) else {
                throw RequestError(.failedPrecondition, "There are no rules before the current ones.")
            }
            let text = try text(number)
            do throws(RequestError) {
                return try putInForce(text, Self.compile(text))
            } catch {
                throw RequestError(.failedPrecondition, "The rules with the number \(number): \(error.message)")
            }
        }
    }

    /// The rules that are kept, and the file that is in force instead.
    ///
    /// - Throws: `FAILED_PRECONDITION` if they cannot be read.
    package func list() throws(RequestError) -> ListRulesResponse {
        let entries = try Self.reading { () throws(StorageError) in try history.all() }
        return ListRulesResponse(rules: entries.map { KeptRules($0) }, file: file ?? "")
    }

    /// The text of the rules with a number; 0 is the newest.
    ///
    /// - Throws: `NOT_FOUND`; `FAILED_PRECONDITION` if they cannot be read.
    package func get(_ number: Int64) throws(RequestError) -> GetRulesResponse {
        let numbers = try Self.reading { () throws(StorageError) in try history.all() }.map(\.number)
        guard let found = number == 0 ? numbers.last : numbers.first(where: { Int64($0) == number }) else {
            let what = number == 0 ? "no rules" : "no rules with the number \(number)"
            throw RequestError(.notFound, "The data directory keeps \(what).")
        }
        return GetRulesResponse(rules: KeptRules(history.entry(found)), text: try text(found))
    }

    /// Checks that no process has applied rules since this one read them: to be called once the directory is locked.
    ///
    /// - Parameter number: of the rules in force; nil for none.
    /// - Throws: `ABORTED` if there are newer ones; `FAILED_PRECONDITION` if the directory cannot be read.
    package func checkNewest(is number: Int?) throws(RequestError) {
        if file != nil { return }
        guard try Self.reading({ () throws(StorageError) in try history.newest() }) == number else {
            throw RequestError(.aborted, "Another process has applied rules during the start; start again.")
        }
    }

    // MARK: Changes

    private func checkNoFile() throws(RequestError) {
        guard let file else { return }
        throw RequestError(
            .failedPrecondition,
            "The server takes its rules from \(file) (--rules): change that file and send SIGHUP, or start without it.")
    }

    /// The number of the newest rules if they have this text. Rules that cannot be read have another one.
    private func unchanged(_ text: String) -> Int? {
        guard let number = try? history.newest(), let newest = try? history.text(number) else { return nil }
        // Texts that are equal may differ in their bytes.
        return newest.utf8.elementsEqual(text.utf8) ? number : nil
    }

    private func putInForce(_ text: String, _ ruleset: Ruleset) throws(RequestError) -> ApplyRulesResponse {
        let entry = try Self.reading { () throws(StorageError) in try history.append(text) }
        let wasOpen = authorization?.apply(ruleset) ?? false
        return answer(entry, changed: true, wasOpen: wasOpen)
    }

    private func answer(_ entry: RulesHistory.Entry, changed: Bool, wasOpen: Bool) -> ApplyRulesResponse {
        ApplyRulesResponse(
            rules: KeptRules(entry), changed: changed,
            security: authorization?.state.authenticator.mode.rawValue ?? "", closed: wasOpen)
    }

    private func text(_ number: Int) throws(RequestError) -> String {
        try Self.reading { () throws(StorageError) in try history.text(number) }
    }

    private static func reading<Output>(
        _ body: () throws(StorageError) -> Output
    ) throws(RequestError) -> Output {
        do throws(StorageError) {
            return try body()
        } catch {
            throw RequestError(.failedPrecondition, "\(error)")
        }
    }

    // MARK: Errors of rules

    /// Errors and characters of each that a message has.
    private static let errorsMax = 10
    private static let errorLengthMax = 200

    private static func compile(_ text: String) throws(RequestError) -> Ruleset {
        do throws(InvalidRules) {
            return try Ruleset(text)
        } catch {
            let source = SourceText(text)
            let errors = error.diagnostics.filter { $0.severity == .error }.prefix(errorsMax).map { diagnostic in
                let start = source.position(of: diagnostic.range.start)
                return "\(start.line):\(start.column): \(diagnostic.message.prefix(errorLengthMax))"
            }
            throw .invalidArgument("The rules have errors:\n\(errors.joined(separator: "\n"))")
        }
    }
}

extension KeptRules {
    init(_ entry: RulesHistory.Entry) {
        self.init(number: Int64(entry.number), timeMicroseconds: entry.time, byteCount: Int64(entry.byteCount))
    }
}
