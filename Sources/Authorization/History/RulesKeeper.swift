package import Basics
package import FirestoreMessages
internal import SecurityRules
internal import Storage
internal import Synchronization

/// Changes the rules that a data directory keeps, and puts them in force in the server of the directory, if one runs.
/// Thread-safe. Every function reads files and may block.
///
///     apply(text) ──► compile ──► SharedRules.add ──► RulesHistory.append ──► Authorization.apply ──► answer
///
/// Servers that have rules in common add a text for all of them first. What others add, each takes over from time to
/// time (``takeShared()``), and before it changes anything itself. The directory keeps a copy.
package final class RulesKeeper: Sendable {
    private let history: RulesHistory
    private let authorization: Authorization?
    private let file: String?
    private let shared: (any SharedRules)?
    /// Held during a change: changes are in force in the order in which they are kept. What the directory has of the
    /// shared rules.
    private let turn = Mutex(SeenRules())

    /// How often a change is tried while other servers make changes too.
    private static let attemptsMax = 5

    /// - Parameters:
    ///   - authorization: the access control of the server; nil if no server runs.
    ///   - file: the file of `--rules`, which is in force instead of what is kept; nil without one.
    ///   - shared: what several servers have in common; nil for a server alone.
    package init(
        _ history: RulesHistory, authorization: Authorization? = nil, file: String? = nil,
        shared: (any SharedRules)? = nil
    ) {
        self.history = history
        self.authorization = authorization
        self.file = file
        self.shared = shared
    }

    /// Keeps rules and puts them in force. The text that is in force already changes nothing.
    ///
    /// - Throws: `INVALID_ARGUMENT` for rules with an error, `FAILED_PRECONDITION` if the server has rules of a file,
    ///   or if the disk fails. Nothing has changed then, except what ``RulesHistory/append(_:)`` describes.
    package func apply(_ text: String) throws(RequestError) -> ApplyRulesResponse {
        try turn.withLock { seen throws(RequestError) in
            try checkNoFile()
            let ruleset = try Self.compile(text)
            for _ in 0..<Self.attemptsMax {
                _ = try take(&seen)
                if let number = unchanged(text) { return answer(history.entry(number), changed: false, wasOpen: false) }
                if let answer = try putInForce(text, ruleset, &seen) { return answer }
            }
            throw .othersApply
        }
    }

    /// Applies the rules that were in force before the newest ones: they become the newest.
    ///
    /// - Throws: `FAILED_PRECONDITION` if there are none, if they cannot be read or have an error, and as for
    ///   ``apply(_:)``.
    package func rollback() throws(RequestError) -> ApplyRulesResponse {
        try turn.withLock { seen throws(RequestError) in
            try checkNoFile()
            for _ in 0..<Self.attemptsMax {
                _ = try take(&seen)
                guard let number = try Self.reading({ () throws(StorageError) in try history.previous() }) else {
                    throw RequestError(.failedPrecondition, "There are no rules before the current ones.")
                }
                let text = try text(number)
                let ruleset: Ruleset
                do throws(RequestError) {
                    ruleset = try Self.compile(text)
                } catch {
                    throw RequestError(.failedPrecondition, "The rules with the number \(number): \(error.message)")
                }
                if let answer = try putInForce(text, ruleset, &seen) { return answer }
            }
            throw .othersApply
        }
    }

    /// Takes over what other servers have applied, and puts the last of it in force.
    ///
    /// - Returns: the number of the last one that was taken; nil if there was none.
    /// - Throws: `UNAVAILABLE`; `INVALID_ARGUMENT` if it has an error for this version, `FAILED_PRECONDITION` if the
    ///   disk fails. Then the rules before stay in force, and the next call tries again.
    package func takeShared() throws(RequestError) -> Int? {
        try turn.withLock { seen throws(RequestError) in try take(&seen) }
    }

    /// Begins with the rules that several servers have in common. If they have none, those of the directory become
    /// theirs.
    ///
    /// - Throws: as ``takeShared()``.
    package func joinShared() throws(RequestError) {
        try turn.withLock { seen throws(RequestError) in
            guard file == nil, let shared else { return }
            for _ in 0..<Self.attemptsMax {
                if try take(&seen) != nil || seen.number > 0 { return }
                guard let number = try Self.reading({ () throws(StorageError) in try history.newest() }) else { return }
                if try shared.add(try text(number), as: number, after: 0) { return seen.number = number }
            }
            throw .othersApply
        }
    }

    /// The rules that are kept, and the file that is in force instead.
    ///
    /// - Throws: `FAILED_PRECONDITION` if the newest are missing, or the directory cannot be read.
    package func list() throws(RequestError) -> ListRulesResponse {
        let entries = try Self.reading { () throws(StorageError) in
            _ = try history.newest()
            return try history.all()
        }
        return ListRulesResponse(rules: entries.map { KeptRules($0) }, file: file ?? "")
    }

    /// The text of the rules with a number; 0 is the newest.
    ///
    /// - Throws: `NOT_FOUND`; `FAILED_PRECONDITION` if they cannot be read, and for 0 if the newest are missing.
    package func get(_ number: Int64) throws(RequestError) -> GetRulesResponse {
        let numbers = try Self.reading { () throws(StorageError) in
            if number == 0 { _ = try history.newest() }
            return try history.all()
        }.map(\.number)
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

    /// - Parameter seen: what the directory has of the shared rules.
    /// - Returns: nil, and nothing has changed, if another server has applied rules meanwhile.
    private func putInForce(
        _ text: String, _ ruleset: Ruleset, _ seen: inout SeenRules
    ) throws(RequestError) -> ApplyRulesResponse? {
        let highest = try Self.reading { () throws(StorageError) in try history.highest() }
        let number = max(seen.number, highest) + 1
        if let shared, try !shared.add(text, as: number, after: seen.number) { return nil }
        let entry = try Self.reading { () throws(StorageError) in try history.append(text, numberMin: number) }
        seen.number = number
        let wasOpen = authorization?.apply(ruleset) ?? false
        return answer(entry, changed: true, wasOpen: wasOpen)
    }

    /// Takes over what other servers have applied.
    ///
    /// - Parameter seen: what the directory has of the shared rules.
    /// - Returns: the number of the last text that was taken; nil if there was none.
    private func take(_ seen: inout SeenRules) throws(RequestError) -> Int? {
        guard file == nil, let shared else { return nil }
        let news = try shared.news(after: seen)
        guard let last = news.texts.last else {
            // Another session repeats the last text, if there is one: all texts were lost.
            if news.session != seen.session { seen.number = 0 }
            seen.session = news.session
            return nil
        }
        if last.number == seen.number, unchanged(last.text) != nil {
            // Another session has repeated what is in force.
            seen.session = news.session
            return nil
        }
        try keep(news.texts, upTo: last)
        (seen.number, seen.session) = (last.number, news.session)
        return last.number
    }

    /// Keeps the texts of other servers in the directory, and puts the last one in force.
    private func keep(
        _ texts: [(number: Int, text: String)], upTo last: (number: Int, text: String)
    ) throws(RequestError) {
        // Rules that this version does not know are not kept: it would not start with them.
        let ruleset = try Self.compile(last.text)
        let known = try Self.reading { () throws(StorageError) in try history.highest() }
        // The directory has them already, and they are in force.
        if known >= last.number, unchanged(last.text) != nil { return }
        for (number, text) in texts where number > known || number == last.number {
            _ = try Self.reading { () throws(StorageError) in try history.append(text, numberMin: number) }
        }
        _ = authorization?.apply(ruleset)
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

extension RequestError {
    fileprivate static let othersApply = RequestError(.aborted, "Other servers apply rules too; try again.")
}

extension KeptRules {
    init(_ entry: RulesHistory.Entry) {
        self.init(number: Int64(entry.number), timeMicroseconds: entry.time, byteCount: Int64(entry.byteCount))
    }
}
