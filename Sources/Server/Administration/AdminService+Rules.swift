internal import Authorization
internal import Basics
internal import Calls
internal import FirestoreMessages

extension AdminService {
    /// The methods of security rules. They read and write files, so each has a thread.
    func rules(_ call: Call, _ request: RawSpan) throws {
        switch call.method {
        case .adminApplyRules:
            let text = try ApplyRulesRequest(wire: request).text
            try onThread(call) { try $0.changeRules { keeper throws(RequestError) in try keeper.apply(text) } }
        case .adminRollbackRules:
            _ = try EmptyMessage(wire: request)
            try onThread(call) { try $0.changeRules { keeper throws(RequestError) in try keeper.rollback() } }
        case .adminListRules:
            _ = try EmptyMessage(wire: request)
            try onThread(call) { try $0.keptRules().list() }
        default:
            let number = try GetRulesRequest(wire: request).number
            try onThread(call) { try $0.keptRules().get(number) }
        }
    }
}

extension AdminService.Context {
    fileprivate func keptRules() throws(RequestError) -> RulesKeeper {
        guard let rules else {
            throw RequestError(.failedPrecondition, "This server has no access control, so it does not keep rules.")
        }
        return rules
    }

    /// Changes the rules and logs what has come of it.
    fileprivate func changeRules(
        _ change: (RulesKeeper) throws(RequestError) -> ApplyRulesResponse
    ) throws(RequestError) -> ApplyRulesResponse {
        do throws(RequestError) {
            let answer = try change(keptRules())
            if answer.changed {
                log(
                    .info, "rules_applied",
                    ["number": String(answer.rules.number), "security": answer.security])
            }
            return answer
        } catch {
            log(.warning, "rules_not_applied", ["message": error.message])
            throw error
        }
    }
}
