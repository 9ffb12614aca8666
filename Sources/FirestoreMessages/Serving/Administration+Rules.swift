// The messages of `hearth.admin.v1` about security rules.

internal import CFirestoreProto

/// Rules of the history that a data directory keeps.
package struct KeptRules: TableMessage, Equatable, Sendable {
    /// From 1 on; 0 stands for none.
    package var number: Int64
    /// When they were applied, in microseconds since 1970.
    package var timeMicroseconds: Int64
    package var byteCount: Int64

    package init(number: Int64, timeMicroseconds: Int64, byteCount: Int64) {
        self.number = number
        self.timeMicroseconds = timeMicroseconds
        self.byteCount = byteCount
    }

    static let table = unsafe MessageTable(
        KeptRules(number: 0, timeMicroseconds: 0, byteCount: 0), held__admin__kept_rules__init,
        hearth__admin__v1__kept_rules__init,
        [
            .number(\.number, \.number), .number(\.timeMicroseconds, \.time_microseconds),
            .number(\.byteCount, \.byte_count),
        ])

    /// What stands for a message that is absent.
    fileprivate static let none = KeptRules(number: 0, timeMicroseconds: 0, byteCount: 0)
}

package struct ApplyRulesRequest: TableMessage, Equatable, Sendable {
    /// As in `firestore.rules`.
    package var text: String

    package init(text: String) { self.text = text }

    static let table = unsafe MessageTable(
        ApplyRulesRequest(text: ""), held__admin__apply_rules_request__init,
        hearth__admin__v1__apply_rules_request__init,
        [.text(\.text, \.text)])
}

/// What has come of rules that were applied, or taken back.
package struct ApplyRulesResponse: TableMessage, Equatable, Sendable {
    /// What is in force now.
    package var rules: KeptRules
    /// Whether the call has changed the rules.
    package var changed: Bool
    /// The mode of the server after the call: `closed`, `emulator` or `insecure`; empty without a server.
    package var security: String
    /// Whether the server was open before the call.
    package var closed: Bool

    package init(rules: KeptRules, changed: Bool, security: String, closed: Bool) {
        self.rules = rules
        self.changed = changed
        self.security = security
        self.closed = closed
    }

    static let table = unsafe MessageTable(
        ApplyRulesResponse(rules: .none, changed: false, security: "", closed: false),
        held__admin__apply_rules_response__init, hearth__admin__v1__apply_rules_response__init,
        [
            .message(\.rules, \.rules, \.n_rules), .flag(\.changed, \.changed), .text(\.security, \.security),
            .flag(\.closed, \.closed),
        ])
}

package struct ListRulesResponse: TableMessage, Equatable, Sendable {
    /// The oldest first. The last one is in force, unless there is a `file`.
    package var rules: [KeptRules]
    /// The file of `--rules`, which is in force instead; empty without one.
    package var file: String

    package init(rules: [KeptRules], file: String) {
        self.rules = rules
        self.file = file
    }

    static let table = unsafe MessageTable(
        ListRulesResponse(rules: [], file: ""), held__admin__list_rules_response__init,
        hearth__admin__v1__list_rules_response__init,
        [.messages(\.rules, \.rules, \.n_rules), .text(\.file, \.file)])
}

package struct GetRulesRequest: TableMessage, Equatable, Sendable {
    /// 0 is the newest.
    package var number: Int64

    package init(number: Int64) { self.number = number }

    static let table = unsafe MessageTable(
        GetRulesRequest(number: 0), held__admin__get_rules_request__init, hearth__admin__v1__get_rules_request__init,
        [.number(\.number, \.number)])
}

package struct GetRulesResponse: TableMessage, Equatable, Sendable {
    package var rules: KeptRules
    package var text: String

    package init(rules: KeptRules, text: String) {
        self.rules = rules
        self.text = text
    }

    static let table = unsafe MessageTable(
        GetRulesResponse(rules: .none, text: ""), held__admin__get_rules_response__init,
        hearth__admin__v1__get_rules_response__init,
        [.message(\.rules, \.rules, \.n_rules), .text(\.text, \.text)])
}
