internal import DocumentJSON

/// Principals that are being changed.
package struct PrincipalList: Sendable {
    package private(set) var records: [PrincipalRecord]

    package init(_ records: [PrincipalRecord] = []) { self.records = records }

    /// The text of the file.
    var text: String { JSONValue.object(["principals": .array(records.map(\.json))]).jsonLines }

    /// What a new principal gets, or what an existing one has to have.
    package struct Grant: Equatable, Sendable {
        package var role: Role
        package var scope: Scope
        /// Without effect for an `admin`, which bypasses rules in any case.
        package var bypassesRules: Bool

        package init(role: Role, scope: Scope, bypassesRules: Bool = false) {
            self.role = role
            self.scope = scope
            self.bypassesRules = bypassesRules || role == .admin
        }
    }

    /// Gives a principal a new API key.
    ///
    /// - Returns: the key. It is not kept, and cannot be shown again.
    package mutating func addAPIKey(
        to name: String, _ grant: Grant, now: Int64
    ) throws(PrincipalFault) -> String {
        let index = try index(of: name, grant)
        let made = APIKey.make(now: now)
        records[index].apiKeys.append(made.record)
        return made.text
    }

    /// Maps client certificates to a principal, by one exact alternative name: `URI:...` or `DNS:...`.
    package mutating func addCertificate(
        _ certificate: String, to name: String, _ grant: Grant
    ) throws(PrincipalFault) {
        let certificate = try PrincipalRecord.checkedCertificate(certificate)
        let index = try index(of: name, grant)
        records[index].certificates.append(certificate)
    }

    /// Gives a principal a new key as a service account.
    ///
    /// - Parameters:
    ///   - url: of the server, as its clients reach it: `https://HOST`.
    ///   - project: the project of the key file; official SDKs take it as their default.
    /// - Returns: the text of the key file, with the private key. It is not kept.
    package mutating func addServiceKey(
        to name: String, _ grant: Grant, url: String, project: String, now: Int64
    ) throws(PrincipalFault) -> String {
        let index = try index(of: name, grant)
        let made: ServiceAccountKey
        do throws(KeyFault) {
            made = try ServiceAccountKey(name: name, url: url, project: project, now: now)
        } catch {
            throw PrincipalFault("\(error)")
        }
        var account =
            records[index].account
            ?? ServiceAccountRecord(email: made.email, tokenURI: made.tokenURI, keys: [])
        guard account.email == made.email, account.tokenURI == made.tokenURI else {
            throw PrincipalFault("the service account of '\(name)' has another project or URL; revoke its keys first")
        }
        account.keys.append(made.record)
        records[index].account = account
        return made.file
    }

    /// Removes one credential by its identifier: of an API key, of a service account's key, or a certificate's name.
    ///
    /// - Returns: whether there was one.
    package mutating func revoke(credential: String) -> Bool {
        for index in records.indices {
            let before = records[index]
            records[index].apiKeys.removeAll { $0.identifier == credential }
            records[index].certificates.removeAll { $0 == credential }
            records[index].account?.keys.removeAll { $0.identifier == credential }
            if records[index].account?.keys.isEmpty == true { records[index].account = nil }
            guard records[index] != before else { continue }
            if records[index].isBare { records.remove(at: index) }
            return true
        }
        return false
    }

    /// Removes a principal with all its credentials.
    ///
    /// - Returns: whether there was one.
    package mutating func remove(_ name: String) -> Bool {
        let before = records.count
        records.removeAll { $0.name == name }
        return records.count < before
    }

    /// The principal of a name, made if there is none.
    private mutating func index(of name: String, _ grant: Grant) throws(PrincipalFault) -> Int {
        if let index = records.firstIndex(where: { $0.name == name }) {
            let record = records[index]
            let has = Grant(role: record.role, scope: record.scope, bypassesRules: record.bypassesRules)
            guard has == grant else { throw PrincipalFault("'\(name)' exists with other rights; revoke it first") }
            return index
        }
        if grant.role == .admin, grant.scope.collections != nil {
            throw PrincipalFault("an admin is not limited to collections")
        }
        records.append(
            PrincipalRecord(
                name: try PrincipalRecord.checkedName(name), role: grant.role, scope: grant.scope,
                bypassesRules: grant.bypassesRules))
        return records.count - 1
    }
}
