internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import Expressions
internal import FirestoreMessages
internal import FirestoreService
internal import Identity
internal import SecurityRules

/// A caller in a database, as it was admitted. Confined to its loop.
final class AdmittedCaller: CallAccess {
    private let authenticator: Authenticator
    private let generation: Int
    private let origin: RequestOrigin
    private var authentication: Authentication
    private let database: DatabaseName
    private let audit: AuditLog
    /// The database's id, as rules see it.
    private let databaseID: String
    /// Before the paths of its documents in their names.
    private let namePrefix: [UInt8]
    /// Whether calls that need so much are admitted.
    private let reading: Admission
    private let writing: Admission
    /// Root collections that the caller is limited to; nil for all.
    private let collections: [[UInt8]]?
    /// The rules that decide; nil if they are not asked.
    private let rules: JudgingRules?
    /// `request.auth`.
    private let auth: Operand
    /// The limits of the caller.
    let limited: LimitedCaller
    /// Where rules need not be asked for documents that are read by their names.
    private var openCollections = OpenCollections()
    /// When the credential was looked at last, in seconds since 1970, and the version of the revocations then.
    private var checked: (at: Int64, revocations: UInt64) = (0, 0)

    let isUnrestricted: Bool

    var callerName: String { authentication.caller.name }

    init(
        _ state: Authorization.State, _ generation: Int, _ origin: RequestOrigin, _ authentication: Authentication,
        _ database: DatabaseName, _ audit: AuditLog, _ limited: LimitedCaller
    ) {
        self.limited = limited
        authenticator = state.authenticator
        self.generation = generation
        self.origin = origin
        self.authentication = authentication
        self.database = database
        self.audit = audit
        databaseID = database.database
        namePrefix = JudgedDocuments.namePrefix(of: database)
        let collections = authentication.caller.collections
        self.collections = collections?.map { Array($0.utf8) }
        let project = database.project
        let rules = state.rules(of: project)
        func admission(_ access: Access) -> Admission {
            state.authenticator.mode.admission(
                of: Standing(
                    authentication.caller, access, project: project, database: database.database,
                    collection: collections?.first),
                for: .documents, via: Approach(origin), hasRules: rules != nil)
        }
        reading = admission(.read)
        writing = admission(.write)
        self.rules = reading == .byRules || writing == .byRules ? rules : nil
        auth = .auth(of: authentication.caller, project: project)
        isUnrestricted = self.rules == nil && collections == nil
    }

    /// Whether another request would be admitted the same.
    func fits(_ origin: RequestOrigin, _ database: DatabaseName, _ generation: Int) -> Bool {
        self.generation == generation && self.database == database && self.origin.showsSame(as: origin)
    }

    // MARK: The call

    /// - Throws: `UNAUTHENTICATED`, `PERMISSION_DENIED`.
    func checkRole(_ method: FirestoreMessages.Method) throws(RequestError) {
        if case .refused(let code, let message) = method.writes ? writing : reading {
            throw RequestError(code, message)
        }
    }

    /// Makes sure that the credential is valid. Looks once a second, and when a user was revoked.
    ///
    /// - Parameters:
    ///   - now: seconds since 1970.
    ///   - skew: the difference of clocks that is granted, in seconds.
    /// - Throws: `UNAUTHENTICATED`.
    func checkCredential(_ now: Int64, skew: Int64 = 0) throws(RequestError) {
        // Before the check: a revocation meanwhile is seen the next time.
        let current = (at: now, revocations: authenticator.revocationsVersion)
        if checked == current { return }
        do throws(TokenError) {
            if !authenticator.isCurrent(authentication) {
                // The same token has the same caller.
                authentication = try authenticator.authenticate(authorization: origin.authorization, now: now)
            }
            try authenticator.check(authentication, now: now - skew)
            checked = current
        } catch {
            throw error.requestError
        }
    }

    func checkStillValid() throws(RequestError) {
        try checkCredential(Authorization.now)
        if case .refused(let code, let message) = reading { throw RequestError(code, message) }
    }

    func beginCommit(_ call: Call) throws(RequestError) { try limited.beginCommit(call) }

    func openListener() throws(RequestError) { try limited.openListener() }

    func closeListener() { limited.closeListener() }

    // MARK: Reads

    func checkGet(_ path: RawSpan, _ state: borrowing JudgedState) throws(RequestError) -> [[UInt8]] {
        try checkScope(path, "get")
        guard let rules, !openCollections.contains(collectionOf: path) else { return [] }
        let verdict = try judge(request(.get, Self.segments(path)), by: rules, state)
        if verdict.allowsSiblings, !rules.countsCoverage { openCollections.note(collectionOf: path) }
        return verdict.reads.map(\.address.utf8)
    }

    func checkList(
        _ query: StructuredQuery, parent: RawSpan, _ state: borrowing JudgedState
    ) throws(RequestError) -> [[UInt8]] {
        if isUnrestricted { return [] }
        // Rules are about collections of one name.
        guard query.from.count == 1, let selector = query.from.first, !selector.collectionID.isEmpty else {
            try deny("list", String(repairingUTF8: parent))
        }
        let path = Self.segments(parent) + [selector.collectionID]
        // A group without a parent reaches into all root collections.
        let isEverywhere = selector.allDescendants && parent.isEmpty
        if collections != nil, isEverywhere { try deny("list", selector.collectionID) }
        try checkScope(Array(path[0].utf8).byteSpan, "list")
        guard let rules else { return [] }
        return try judge(request(.list, path, query), by: rules, state).reads.map(\.address.utf8)
    }

    private func request(
        _ method: RulesRequest.Method, _ path: [String], _ query: StructuredQuery? = nil
    ) -> RulesRequest {
        let now = TimestampValue(microseconds: Int64(clamping: SystemClock.microseconds()))
        return RulesRequest(method, path: path, database: databaseID, auth: auth, time: now, query: query)
    }

    /// Judges a read in the state that is read. A read of the past is judged in the present state too: what rules
    /// permitted then does not count now.
    private func judge(
        _ request: RulesRequest, by rules: JudgingRules, _ state: borrowing JudgedState
    ) throws(RequestError) -> Verdict {
        let verdict = try judgeOnce(request, by: rules, state)
        if let present = try state.present() { _ = try judgeOnce(request, by: rules, present) }
        return verdict
    }

    private func judgeOnce(
        _ request: RulesRequest, by rules: JudgingRules, _ state: borrowing JudgedState
    ) throws(RequestError) -> Verdict {
        let documents = ReadDocuments(state, namePrefix: namePrefix)
        let verdict = rules.judge(request, access: documents)
        limited.spend(ruleWork: verdict.work)
        // Rules that could not read a document decide nothing.
        if let failure = documents.failure { throw failure }
        if !verdict.isAllowed { try deny(request.method.rawValue, request.path.joined(separator: "/")) }
        return verdict
    }

    // MARK: Writes

    func judge(_ writes: WriteList, _ state: JudgedState) throws(RequestError) -> any WriteJudgement {
        for write in writes.writes { try checkScope(writes.path(of: write), "write") }
        guard let rules else { return ScopeJudgement() }
        return RulesWriteJudgement(
            rules, writes, state, databaseID: databaseID, auth: auth, limited: limited,
            denied: { [self] (what, path) throws(RequestError) in try deny(what, String(repairingUTF8: path)) })
    }

    // MARK: Decisions

    /// - Parameter path: of a document, or of a root collection.
    private func checkScope(_ path: RawSpan, _ what: String) throws(RequestError) {
        guard let collections else { return }
        var segments = PathSegments(path)
        if let root = segments.next(), collections.contains(where: { $0.byteSpan.equalsBytes(root) }) { return }
        try deny(what, String(repairingUTF8: path))
    }

    private func deny(_ what: String, _ path: String) throws(RequestError) -> Never {
        audit.denied(origin, authentication.caller.name, what, path, database: database)
        throw .insufficientPermissions
    }

    static func segments(_ path: RawSpan) -> [String] {
        var segments = PathSegments(path)
        var texts: [String] = []
        texts.reserveCapacity(4)
        while let segment = segments.next() { texts.append(String(repairingUTF8: segment)) }
        return texts
    }
}

/// The writes of a caller whose scope is all that limits it.
final class ScopeJudgement: WriteJudgement {
    func step() throws(RequestError) -> CommitBasis? { CommitBasis() }
}

extension Caller {
    /// Root collections that a principal is limited to; nil for all.
    fileprivate var collections: [String]? {
        if case .service(let principal) = self { principal.scope.collections } else { nil }
    }
}

extension FirestoreMessages.Method {
    /// Whether the method changes documents.
    fileprivate var writes: Bool {
        switch self {
        case .commit, .batchWrite, .write, .createDocument, .updateDocument, .deleteDocument: true
        default: false
        }
    }
}
