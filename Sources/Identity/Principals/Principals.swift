/// All principals at one moment, found by their credentials. Immutable and thread-safe; a reload makes another one.
package final class Principals: Sendable {
    /// A key that signs tokens of a service account.
    struct ServiceKey: Sendable {
        let key: VerificationKey
        let principal: ServicePrincipal
        let account: ServiceAccountRecord
    }

    // By bytes: equal texts of other bytes are other credentials.
    private let apiKeys: [[UInt8]: (hash: SHA256Hash, principal: ServicePrincipal)]
    private let certificates: [[UInt8]: ServicePrincipal]
    private let serviceKeys: [[UInt8]: ServiceKey]
    package let isEmpty: Bool

    /// - Throws: `PrincipalFault` if two principals share a name or a credential, or a key is damaged.
    package init(_ records: [PrincipalRecord] = []) throws(PrincipalFault) {
        var lookup = Lookup()
        for record in records { try lookup.add(record) }
        apiKeys = lookup.apiKeys
        certificates = lookup.certificates
        serviceKeys = lookup.serviceKeys
        isEmpty = records.isEmpty
    }

    /// The principal of an API key, whose hash is compared in constant time.
    func principal(apiKey text: [UInt8]) -> (identifier: String, principal: ServicePrincipal)? {
        guard let identifier = APIKey.identifier(of: text), let known = apiKeys[Array(identifier.utf8)],
            known.hash == SHA256Hash(of: text)
        else { return nil }
        return (identifier, known.principal)
    }

    func principal(apiKeyIdentifier: String) -> ServicePrincipal? { apiKeys[Array(apiKeyIdentifier.utf8)]?.principal }

    /// - Parameter certificate: `URI:...` or `DNS:...`.
    func principal(certificate: String) -> ServicePrincipal? { certificates[Array(certificate.utf8)] }

    func serviceKey(_ identifier: String) -> ServiceKey? { serviceKeys[Array(identifier.utf8)] }
}

/// The tables while they grow.
private struct Lookup {
    var names: Set<[UInt8]> = []
    var emails: Set<[UInt8]> = []
    var apiKeys: [[UInt8]: (hash: SHA256Hash, principal: ServicePrincipal)] = [:]
    var certificates: [[UInt8]: ServicePrincipal] = [:]
    var serviceKeys: [[UInt8]: Principals.ServiceKey] = [:]

    mutating func add(_ record: PrincipalRecord) throws(PrincipalFault) {
        let what = "the principal '\(record.name)'"
        guard names.insert(Array(record.name.utf8)).inserted else { throw PrincipalFault("\(what) occurs twice") }
        let principal = ServicePrincipal(
            name: record.name, role: record.role, scope: record.scope, bypassesRules: record.bypassesRules)
        for key in record.apiKeys {
            guard apiKeys.updateValue((key.hash, principal), forKey: Array(key.identifier.utf8)) == nil else {
                throw PrincipalFault("an API key of \(what) occurs twice")
            }
        }
        for name in record.certificates {
            guard certificates.updateValue(principal, forKey: Array(name.utf8)) == nil else {
                throw PrincipalFault("a certificate of \(what) occurs twice")
            }
        }
        if let account = record.account { try add(account, principal, what) }
    }

    private mutating func add(
        _ account: ServiceAccountRecord, _ principal: ServicePrincipal, _ what: String
    ) throws(PrincipalFault) {
        guard emails.insert(Array(account.email.utf8)).inserted else {
            throw PrincipalFault("the service account of \(what) occurs twice")
        }
        for record in account.keys {
            let key: VerificationKey
            do throws(KeyFault) {
                key = try VerificationKey(pem: Array(record.publicKey.utf8), algorithm: .rs256)
            } catch {
                throw PrincipalFault("a key of \(what): \(error)")
            }
            let entry = Principals.ServiceKey(key: key, principal: principal, account: account)
            guard serviceKeys.updateValue(entry, forKey: Array(record.identifier.utf8)) == nil else {
                throw PrincipalFault("a key of \(what) occurs twice")
            }
        }
    }
}
