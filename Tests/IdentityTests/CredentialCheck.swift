// What must hold for credentials and keys, whatever their bytes. Called by tests and by the fuzzer.

import Basics
import DocumentJSON

#if canImport(Identity)
    @testable import Identity
#endif

enum CredentialCheck {
    private static func authenticator(_ mode: SecurityMode) -> Authenticator? {
        guard let principals = try? Principals() else { return nil }
        let issuer = TokenIssuer.firebase(project: "p", keys: FixedKeys(.empty))
        return Authenticator(
            mode: mode, users: TokenVerifier([issuer]), principals: principals, revocations: Revocations(),
            accessTokens: AccessTokens(secret: [UInt8](repeating: 1, count: 32)))
    }

    private static let closed = authenticator(.closed)
    private static let emulator = authenticator(.emulator)

    /// The broken property, or nil.
    ///
    /// Nothing traps; without keys nobody is known; a token that is read has one spelling; JSON that is read is written
    /// as itself.
    static func violation(_ bytes: [UInt8]) -> String? {
        if let accepted = try? closed?.authenticate(bearer: bytes, now: 1_000) {
            return "a token of no issuer is accepted: \(accepted.caller.name)"
        }
        if let accepted = try? emulator?.authenticate(bearer: bytes, now: 1_000), case .service = accepted.caller {
            return "a stranger is a principal"
        }
        return tokenViolation(bytes) ?? jsonViolation(bytes) ?? keyViolation(bytes)
    }

    private static func tokenViolation(_ bytes: [UInt8]) -> String? {
        // The parts of an input are the texts of a token, so that the fuzzer need not find base64.
        let texts = bytes.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false).map { Array($0) }
        let token = Array(texts.map { Base64URL.encode($0) }.joined(separator: ".").utf8)
        guard let parts = try? TokenParts(token) else { return nil }
        if token.count > TokenParts.bytesMax { return "a long token is read" }
        if parts.signature != texts.last { return "a signature changes" }
        guard case .object = parts.claims else { return "claims are not an object" }
        let claims = Claims(values: parts.claims, now: 1_000)
        if let lifetime = try? claims.lifetime(), lifetime.expiresAt <= 940 || lifetime.issuedAt > 1_060 {
            return "a token of another time is accepted"
        }
        if let uid = try? claims.identifier("sub"), uid.isEmpty || uid.unicodeScalars.count > 128 {
            return "a wrong identifier is accepted"
        }
        return nil
    }

    private static func jsonViolation(_ bytes: [UInt8]) -> String? {
        guard let value = try? JSONValue.read(bytes) else { return nil }
        for text in [value.json, value.jsonLines] {
            guard let again = try? JSONValue.read(Array(text.utf8)) else { return "what is written cannot be read" }
            if again != value { return "a value changes on its way round" }
        }
        return nil
    }

    private static func keyViolation(_ bytes: [UInt8]) -> String? {
        if let keys = try? KeySet.read(text: bytes), keys.count == 0 || keys.count > KeyLimits.keysMax {
            return "a set of \(keys.count) keys"
        }
        if let records = try? PrincipalRecord.readAll(bytes) {
            let list = PrincipalList(records)
            guard let again = try? PrincipalRecord.readAll(Array(list.text.utf8)), again == records else {
                return "principals change on their way round"
            }
        }
        return nil
    }
}
