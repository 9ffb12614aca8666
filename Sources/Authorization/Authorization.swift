// The authorisation of a server: who calls (Identity), and what the security rules let that caller do (SecurityRules).
//
//     call ──► origin ──► Authenticator ──► caller ──► SecurityMode ──► allowed, by the rules, or refused
//                                                                             │
//                     each document, query and write of the call ◄────────────┘ AdmittedCaller
//
// What decides is one immutable state. SIGHUP, `hearth rules apply` and the emulator's route replace it as a whole.
// Each replacement has a new generation; streams notice it within a second and are judged again.

package import Basics
package import Calls
package import DocumentModel
package import FirestoreMessages
package import FirestoreService
package import Identity
package import SecurityRules
internal import Synchronization

/// The access control of a server. Thread-safe.
package final class Authorization: AccessControl {
    private let current: Mutex<State>
    private let number = Atomic<Int>(1)
    /// Whether all callers may do everything, so that requests need not be looked at.
    private let isOpen: Atomic<Bool>
    private let audit: AuditLog
    /// Whether the log has a line about a proxy that is not trusted.
    private let hasNotedProxy = Atomic<Bool>(false)
    private let logins = LoginLimiter { SystemClock.monotonicMilliseconds() }
    private let limiter: CallerLimiter

    /// - Parameter rates: how often callers may ask.
    package init(_ state: State, rates: CallerRates = CallerRates(), log: Log) {
        limiter = CallerLimiter(rates) { SystemClock.monotonicMilliseconds() }
        current = Mutex(state)
        isOpen = Atomic(state.authenticator.mode.trustsEveryone)
        audit = AuditLog(log)
    }

    package var state: State { current.withLock { $0 } }
    package var generation: Int { number.load(ordering: .acquiring) }

    /// Replaces what decides; the mode stays. Calls under way keep what they were admitted with; streams are judged
    /// again.
    package func replace(_ authenticator: Authenticator, _ ruleset: Ruleset?) {
        change { state in
            state.authenticator = authenticator.with(mode: state.authenticator.mode)
            state.ruleset = ruleset
        }
    }

    /// Replaces what credentials are checked against; mode and rules stay.
    package func replace(_ authenticator: Authenticator) {
        change { state in state.authenticator = authenticator.with(mode: state.authenticator.mode) }
    }

    /// Puts rules of the data directory in force. An open server is closed from now on: its next start would be closed
    /// too.
    ///
    /// - Returns: whether the server was open.
    func apply(_ ruleset: Ruleset) -> Bool {
        change { state in state.apply(ruleset) }
    }

    private func change<Answer, Failure: Error>(_ body: (inout State) throws(Failure) -> Answer) throws(Failure)
        -> Answer
    {
        try current.withLock { (state) throws(Failure) in
            let answer = try body(&state)
            isOpen.store(state.authenticator.mode.trustsEveryone, ordering: .releasing)
            number.add(1, ordering: .releasing)
            return answer
        }
    }

    /// Takes the rules of a project that came over the emulator's route. An open server is in the emulator's mode from
    /// now on.
    ///
    /// - Throws: `PERMISSION_DENIED` on a server that is closed, or insecure on purpose; `RESOURCE_EXHAUSTED` beyond
    ///   ``State/emulatedProjectsMax`` projects.
    package func setEmulatorRules(_ rules: Ruleset, of project: String) throws(RequestError) {
        try change { (state) throws(RequestError) in try state.emulate(rules, of: project) }
    }

    // MARK: Calls of Firestore

    package var admitsEveryone: Bool { isOpen.load(ordering: .acquiring) && !limiter.limitsNetworks }

    package func admit(
        _ call: Call, _ method: FirestoreMessages.Method, in database: DatabaseName, reusing last: (any CallAccess)?
    ) throws(RequestError) -> (any CallAccess)? {
        if call.isLocal { return nil }
        if isOpen.load(ordering: .acquiring) { return try admitToOpenServer(call, reusing: last) }
        let origin = call.origin
        if let last = last as? AdmittedCaller, last.fits(origin, database, generation) {
            try last.limited.beginRequest(call)
            try audited(origin, method, database) { () throws(RequestError) in
                // As a first call is judged: with the difference of clocks that it is granted.
                try last.checkCredential(Self.now, skew: Authenticator.clockSkewSeconds)
                try last.checkRole(method)
            }
            return last
        }
        let network = origin.limitedNetwork
        try LimitedCaller.check(limiter.refusalsExceeded(network), call)
        // Before the state: at worst a caller is looked at once more.
        let generation = generation
        let state = state
        let caller = try audited(origin, method, database) { () throws(RequestError) in
            let authentication = try authenticate(origin, state)
            let limited = LimitedCaller(limiter, limiter.shares(of: authentication.caller, at: network))
            let caller = AdmittedCaller(state, generation, origin, authentication, database, audit, limited)
            try caller.checkRole(method)
            return caller
        }
        try caller.limited.beginRequest(call)
        return caller
    }

    private func admitToOpenServer(
        _ call: Call, reusing last: (any CallAccess)?
    ) throws(RequestError) -> (any CallAccess)? {
        if call.isProxied { try check(.anonymous, for: .documents, state, call.origin) }
        guard limiter.limitsNetworks, let network = call.origin.limitedNetwork else { return nil }
        let known = (last as? OpenCaller).flatMap { $0.network == network ? $0 : nil }
        let caller = known ?? OpenCaller(limiter, network)
        try caller.limited.beginRequest(call)
        return caller
    }

    // MARK: Limits

    /// What limits of callers have refused since the start, by limit.
    package var limitedRequests: [(label: String, count: UInt64)] { limiter.refused }

    /// Counts an answer if it is UNAUTHENTICATED.
    private func count(_ error: RequestError, _ origin: RequestOrigin) {
        if error.code == .unauthenticated { limiter.refused(origin.limitedNetwork) }
    }

    /// Who sends a request: a text whose bytes are equal for equal callers alone; nil if the credential is refused.
    package func identity(of origin: RequestOrigin) -> String? {
        do throws(RequestError) {
            return try authenticate(origin, state).caller.identity
        } catch {
            return nil
        }
    }

    // MARK: Other requests

    /// Decides whether a request may be made that is about no document.
    ///
    /// - Throws: `UNAUTHENTICATED` or `PERMISSION_DENIED`.
    package func admit(_ origin: RequestOrigin, for purpose: Purpose) throws(RequestError) {
        do throws(RequestError) {
            try check(origin, for: purpose)
        } catch {
            audit.refused(origin, purpose.rawValue, database: nil, error)
            throw error
        }
    }

    /// Whether ``admit(_:for:)`` would admit a request; without a line in the log.
    package func permits(_ origin: RequestOrigin, for purpose: Purpose) -> Bool {
        do throws(RequestError) {
            try check(origin, for: purpose)
            return true
        } catch {
            return false
        }
    }

    private func check(_ origin: RequestOrigin, for purpose: Purpose) throws(RequestError) {
        if origin.isLocal || purpose == .health { return }
        let state = state
        if state.authenticator.mode.trustsEveryone, !origin.isProxied { return }
        try LimitedCaller.check(limiter.refusalsExceeded(origin.limitedNetwork))
        do throws(RequestError) {
            let caller = try authenticate(origin, state).caller
            let standing =
                if case .service(let principal) = caller {
                    Standing.service(permits: principal.administersServer, bypassesRules: true)
                } else {
                    Standing(caller, .administer, project: "", database: "", collection: nil)
                }
            try check(standing, for: purpose, state, origin)
        } catch {
            count(error, origin)
            throw error
        }
    }

    private func check(
        _ standing: Standing, for purpose: Purpose, _ state: State, _ origin: RequestOrigin
    ) throws(RequestError) {
        let admission = state.authenticator.mode.admission(
            of: standing, for: purpose, via: Approach(origin), hasRules: state.hasRules)
        if case .refused(let code, let message) = admission { throw RequestError(code, message) }
    }

    // MARK: Callers of other servers

    /// Who makes a call, for the server that takes the writes.
    ///
    /// A server that trusts everyone vouches for nobody: there its callers are what callers without a credential are.
    /// - Throws: `UNAUTHENTICATED` for a credential that is refused, `RESOURCE_EXHAUSTED` after many failures.
    package func vouch(for call: Call) throws(RequestError) -> VouchedCaller {
        if call.isLocal { return VouchedCaller(.admin, isVerified: true) }
        let state = state
        let mode = state.authenticator.mode
        if mode.trustsEveryone { return VouchedCaller(.anonymous, isVerified: false) }
        let origin = call.origin
        try LimitedCaller.check(limiter.refusalsExceeded(origin.limitedNetwork), call)
        do throws(RequestError) {
            return VouchedCaller(try authenticate(origin, state), isVerified: mode == .closed)
        } catch {
            audit.refused(origin, call.method.name, database: nil, error)
            count(error, origin)
            throw error
        }
    }

    /// The caller that another server vouches for. A closed server takes its word only if it verifies credentials.
    /// Since then the token may have expired, and this server may know of a later revocation.
    ///
    /// - Throws: `UNAUTHENTICATED`, for bytes of another form too.
    private static func authentication(
        vouched bytes: [UInt8], _ authenticator: Authenticator
    ) throws(RequestError) -> Authentication {
        guard let vouched = VouchedCaller(bytes: bytes) else {
            throw RequestError(.unauthenticated, "The forwarded caller cannot be read.")
        }
        guard vouched.isVerified || authenticator.mode.acceptsUnsigned else { return .anonymous }
        do throws(TokenError) {
            try authenticator.check(vouched.authentication, now: now - Authenticator.clockSkewSeconds)
        } catch {
            throw error.requestError
        }
        return vouched.authentication
    }

    // MARK: Credentials

    /// Seconds since 1970.
    static var now: Int64 { SystemClock.wallNanoseconds() / 1_000_000_000 }

    private func authenticate(_ origin: RequestOrigin, _ state: State) throws(RequestError) -> Authentication {
        if let vouched = origin.vouchedCaller { return try Self.authentication(vouched: vouched, state.authenticator) }
        let network = Self.network(of: origin)
        if origin.isProxied, !origin.isForwarded, !hasNotedProxy.exchange(true, ordering: .relaxed) {
            audit.noteProxy(origin)
        }
        if origin.authorization != nil {
            try checkWait(network, logins.slowsNames ? Self.claimedName(of: origin, state) : nil)
        }
        do throws(TokenError) {
            let authentication = try state.authenticator.authenticate(
                authorization: origin.authorization, certificates: origin.certificateNames, now: Self.now)
            if let name = authentication.loginName { logins.succeeded(network, name: name) }
            return authentication
        } catch {
            // Nobody guesses an expired token.
            if [.signature, .unknownPrincipal].contains(error) {
                logins.failed(network, name: Self.claimedName(of: origin, state))
            }
            throw error.requestError
        }
    }

    /// Gives an access token for the assertion of a service account.
    ///
    /// - Throws: `UNAUTHENTICATED` for an assertion that is refused, `RESOURCE_EXHAUSTED` after many failures.
    package func exchange(
        grantType: String, assertion: [UInt8], origin: RequestOrigin
    ) throws(RequestError) -> Authenticator.AccessToken {
        let (network, authenticator) = (Self.network(of: origin), state.authenticator)
        let name = authenticator.claimedName(of: assertion)
        try LimitedCaller.check(limiter.refusalsExceeded(origin.limitedNetwork))
        try checkWait(network, name)
        do throws(TokenError) {
            let token = try authenticator.exchange(grantType: grantType, assertion: assertion, now: Self.now)
            if let name { logins.succeeded(network, name: name) }
            return token
        } catch {
            logins.failed(network, name: error == .signature ? name : nil)
            audit.refused(origin, "token", database: nil, error.requestError)
            count(error.requestError, origin)
            throw error.requestError
        }
    }

    /// What the console of a server is to show with its requests.
    package struct ConsoleGrant: Sendable {
        package let mode: SecurityMode
        /// Nil if requests need no token.
        package let token: Authenticator.AccessToken?
    }

    /// A token of at most an hour for a caller that may administer the server.
    ///
    /// - Throws: `UNAUTHENTICATED` or `PERMISSION_DENIED` for other callers.
    package func consoleGrant(_ origin: RequestOrigin) throws(RequestError) -> ConsoleGrant {
        try admit(origin, for: .administration)
        let state = state
        let mode = state.authenticator.mode
        guard mode == .closed, let authorization = origin.authorization else {
            return ConsoleGrant(mode: mode, token: nil)
        }
        let authentication = try authenticate(origin, state)
        do throws(TokenError) {
            let shown = try Authenticator.bearer(authorization)
            return ConsoleGrant(
                mode: mode, token: state.authenticator.temporaryToken(for: authentication, shown: shown, now: Self.now))
        } catch {
            throw error.requestError
        }
    }

    /// The network whose failed logins slow it; nil if they slow nobody.
    private static func network(of origin: RequestOrigin) -> CallerNetwork? {
        origin.countedAddress.flatMap { CallerNetwork(bytes: $0.bytes) }
    }

    /// The name that the credential of a request claims; nil if it claims none.
    private static func claimedName(of origin: RequestOrigin, _ state: State) -> String? {
        guard let authorization = origin.authorization, let token = try? Authenticator.bearer(authorization) else {
            return nil
        }
        return state.authenticator.claimedName(of: token)
    }

    private func checkWait(_ network: CallerNetwork?, _ name: String?) throws(RequestError) {
        let wait = logins.waitMilliseconds(network, name: name)
        guard wait > 0 else { return }
        throw RequestError(.resourceExhausted, "Too many failed logins; try again in \((wait + 999) / 1_000) s.")
    }

    package func retry(_ call: Call, after error: RequestError, _ then: @escaping @Sendable () -> Void) -> Bool {
        guard error == TokenError.unknownKey.requestError, let authorization = call.authorization,
            let token = try? Authenticator.bearer(authorization)
        else { return false }
        return state.authenticator.refreshKeys(for: token, then)
    }

    private func audited<Answer>(
        _ origin: RequestOrigin, _ method: FirestoreMessages.Method, _ database: DatabaseName,
        _ body: () throws(RequestError) -> Answer
    ) throws(RequestError) -> Answer {
        do throws(RequestError) {
            return try body()
        } catch {
            audit.refused(origin, method.name, database: database, error)
            count(error, origin)
            throw error
        }
    }
}

extension Approach {
    init(_ origin: RequestOrigin) { self.init(isLoopback: origin.isLoopback, isProxied: origin.isProxied) }
}
