// The messages of `hearth.admin.v1` about security rules.

package import Basics
internal import CFirestoreProto

/// Rules of the history that a data directory keeps.
package struct KeptRules: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__admin__kept_rules__init, hearth__admin__v1__kept_rules__init)

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

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe KeptRules(
                number: message.number, timeMicroseconds: message.time_microseconds, byteCount: message.byte_count)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, _ in
            unsafe message.number = number
            unsafe message.time_microseconds = timeMicroseconds
            unsafe message.byte_count = byteCount
        }
    }

    /// What stands for a message that is absent.
    fileprivate static let none = KeptRules(number: 0, timeMicroseconds: 0, byteCount: 0)
}

package struct ApplyRulesRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__admin__apply_rules_request__init, hearth__admin__v1__apply_rules_request__init)

    /// As in `firestore.rules`.
    package var text: String

    package init(text: String) { self.text = text }

    package init(wire: RawSpan) throws { text = try unsafe Self.layout.read(wire) { unsafe $0.text.text } }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in unsafe message.text = arena.bytes(text) }
    }
}

/// What has come of rules that were applied, or taken back.
package struct ApplyRulesResponse: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__admin__apply_rules_response__init, hearth__admin__v1__apply_rules_response__init)

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

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            let rules = try unsafe lendLast(message.rules, message.n_rules) { try KeptRules(wire: $0) }
            return unsafe ApplyRulesResponse(
                rules: rules ?? .none, changed: message.changed != 0, security: message.security.text,
                closed: message.closed != 0)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_rules, message.rules) = arena.list([rules]) { unsafe arena.bytes($0.encode) }
            unsafe message.changed = changed ? 1 : 0
            unsafe message.security = arena.bytes(security)
            unsafe message.closed = closed ? 1 : 0
        }
    }
}

package struct ListRulesResponse: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__admin__list_rules_response__init, hearth__admin__v1__list_rules_response__init)

    /// The oldest first. The last one is in force, unless there is a `file`.
    package var rules: [KeptRules]
    /// The file of `--rules`, which is in force instead; empty without one.
    package var file: String

    package init(rules: [KeptRules], file: String) {
        self.rules = rules
        self.file = file
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe ListRulesResponse(
                rules: try elements(message.rules, message.n_rules) {
                    try unsafe $0.lend { try KeptRules(wire: $0) }
                },
                file: message.file.text)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_rules, message.rules) = arena.list(rules) { unsafe arena.bytes($0.encode) }
            unsafe message.file = arena.bytes(file)
        }
    }
}

package struct GetRulesRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__admin__get_rules_request__init, hearth__admin__v1__get_rules_request__init)

    /// 0 is the newest.
    package var number: Int64

    package init(number: Int64) { self.number = number }

    package init(wire: RawSpan) throws { number = try unsafe Self.layout.read(wire) { unsafe $0.number } }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, _ in unsafe message.number = number }
    }
}

package struct GetRulesResponse: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__admin__get_rules_response__init, hearth__admin__v1__get_rules_response__init)

    package var rules: KeptRules
    package var text: String

    package init(rules: KeptRules, text: String) {
        self.rules = rules
        self.text = text
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            let rules = try unsafe lendLast(message.rules, message.n_rules) { try KeptRules(wire: $0) }
            return unsafe GetRulesResponse(rules: rules ?? .none, text: message.text.text)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_rules, message.rules) = arena.list([rules]) { unsafe arena.bytes($0.encode) }
            unsafe message.text = arena.bytes(text)
        }
    }
}
