internal import DocumentJSON
internal import Expressions
internal import Identity
internal import SecurityRules

extension Operand {
    /// `request.auth`: null, or a map with `uid` and `token`.
    static func auth(of caller: Caller, project: String) -> Operand {
        guard case .user(let user) = caller, user.opens(project: project) else { return .null }
        guard case .map(let claims) = Operand(user.claims) else { return RulesRequest.user(user.uid, token: [:]) }
        return RulesRequest.user(user.uid, token: claims)
    }

    init(_ json: JSONValue) {
        self =
            switch json {
            case .null: .null
            case .boolean(let value): .boolean(value)
            case .integer(let value): .integer(value)
            case .double(let value): .double(value)
            case .string(let value): .string(value)
            case .array(let elements): .list(elements.map { Operand($0) })
            case .object(let members): .map(OperandMap(members.map { ($0.key, Operand($0.value)) }))
            }
    }
}
