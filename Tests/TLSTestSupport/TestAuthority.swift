// Certificates that tests make: nothing secret is kept in the repository.

import COpenSSLTLS

/// Some kind of key.
package enum TestKeyKind: Sendable {
    case p256
    case p384
    case ed25519
    case rsa(bits: Int32)
}

/// A key pair; freed with its last reference.
package final class TestKey: @unchecked Sendable {
    // Sendable: never changed; OpenSSL counts references atomically.
    package let pointer: OpaquePointer

    package init(_ kind: TestKeyKind = .p256) {
        let type =
            switch kind {
            case .p256, .p384: EVP_PKEY_EC
            case .ed25519: EVP_PKEY_ED25519
            case .rsa: EVP_PKEY_RSA
            }
        let context = EVP_PKEY_CTX_new_id(type, nil)
        defer { EVP_PKEY_CTX_free(context) }
        precondition(EVP_PKEY_keygen_init(context) == 1)
        switch kind {
        case .p256: EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1)
        case .p384: EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_secp384r1)
        case .ed25519: break
        case .rsa(let bits): EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits)
        }
        var made: OpaquePointer?
        precondition(EVP_PKEY_keygen(context, &made) == 1, "OpenSSL makes no key")
        pointer = made!
    }

    deinit { EVP_PKEY_free(pointer) }

    /// The private key as PKCS #8 in PEM.
    package var privatePEM: [UInt8] { text { PEM_write_bio_PrivateKey($0, pointer, nil, nil, 0, nil, nil) } }

    /// The same, encrypted with a password.
    package func encryptedPEM(password: String) -> [UInt8] {
        text { bio in
            var password = Array(password.utf8)
            return PEM_write_bio_PrivateKey(
                bio, pointer, EVP_aes_128_cbc(), &password, Int32(password.count), nil, nil)
        }
    }

    /// The public key in PEM.
    package var publicPEM: [UInt8] { text { PEM_write_bio_PUBKEY($0, pointer) } }
}

/// What OpenSSL writes into memory.
private func text(_ write: (OpaquePointer?) -> Int32) -> [UInt8] {
    let bio = BIO_new(BIO_s_mem())
    defer { BIO_free_all(bio) }
    precondition(write(bio) == 1, "OpenSSL writes no PEM")
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = BIO_read(bio, &bytes, Int32(bytes.count))
    return Array(bytes.prefix(Int(count)))
}

/// A certificate and its key.
package struct TestCertificate: Sendable {
    /// PEM.
    package let certificate: [UInt8]
    package let key: TestKey
    package let serial: Int
}

/// An authority of tests, which signs certificates and revocation lists.
package final class TestAuthority: @unchecked Sendable {
    // Sendable: used by one test at a time.
    package let key: TestKey
    private let name: String
    private var nextSerial = 2
    /// Its certificate, PEM.
    package let certificate: [UInt8]
    private let parsed: OpaquePointer

    /// - Parameter issuer: an authority above; nil for a root.
    package init(_ name: String = "Tests", issuer: TestAuthority? = nil) {
        key = TestKey()
        self.name = name
        let extensions = [
            (NID_basic_constraints, "critical,CA:TRUE"), (NID_key_usage, "critical,keyCertSign,cRLSign"),
        ]
        let signer = Signer(key: issuer?.key ?? key, name: issuer?.name ?? name)
        parsed = signer.sign(subject: name, key: key, serial: 1, valid: -3600...86_400, extensions)
        let made = parsed
        certificate = text { PEM_write_bio_X509($0, made) }
    }

    deinit { X509_free(parsed) }

    /// Signs a certificate.
    ///
    /// - Parameters:
    ///   - names: as OpenSSL writes them: `DNS:localhost`, `IP:127.0.0.1`, `URI:spiffe://a/b`.
    ///   - valid: seconds from now on.
    package func issue(
        _ names: [String], subject: String = "subject", key: TestKey = TestKey(),
        valid: ClosedRange<Int> = -3600...86_400
    ) -> TestCertificate {
        var extensions = [(NID_basic_constraints, "critical,CA:FALSE")]
        if !names.isEmpty { extensions.append((NID_subject_alt_name, names.joined(separator: ","))) }
        let serial = nextSerial
        nextSerial += 1
        let made = Signer(key: self.key, name: name).sign(
            subject: subject, key: key, serial: serial, valid: valid, extensions)
        defer { X509_free(made) }
        return TestCertificate(certificate: text { PEM_write_bio_X509($0, made) }, key: key, serial: serial)
    }

    /// Signs a revocation list, PEM.
    ///
    /// - Parameter valid: seconds from now on.
    package func revocationList(_ serials: [Int], valid: ClosedRange<Int> = -60...86_400) -> [UInt8] {
        let list = X509_CRL_new()
        defer { X509_CRL_free(list) }
        X509_CRL_set_version(list, 1)
        X509_CRL_set_issuer_name(list, X509_get_subject_name(parsed))
        let (start, end) = (time(valid.lowerBound), time(valid.upperBound))
        defer {
            ASN1_STRING_free(start)
            ASN1_STRING_free(end)
        }
        X509_CRL_set1_lastUpdate(list, start)
        X509_CRL_set1_nextUpdate(list, end)
        for serial in serials {
            let entry = X509_REVOKED_new()
            let number = ASN1_INTEGER_new()
            ASN1_INTEGER_set(number, serial)
            X509_REVOKED_set_serialNumber(entry, number)
            X509_REVOKED_set_revocationDate(entry, start)
            ASN1_INTEGER_free(number)
            X509_CRL_add0_revoked(list, entry)
        }
        precondition(X509_CRL_sign(list, key.pointer, EVP_sha256()) > 0)
        return text { PEM_write_bio_X509_CRL($0, list) }
    }

    private func time(_ seconds: Int) -> UnsafeMutablePointer<ASN1_TIME>? { X509_gmtime_adj(nil, seconds) }
}

private struct Signer {
    let key: TestKey
    let name: String

    func sign(
        subject: String, key subjectKey: TestKey, serial: Int, valid: ClosedRange<Int>, _ extensions: [(Int32, String)]
    ) -> OpaquePointer {
        let certificate = X509_new()!
        X509_set_version(certificate, 2)
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial)
        X509_gmtime_adj(X509_getm_notBefore(certificate), valid.lowerBound)
        X509_gmtime_adj(X509_getm_notAfter(certificate), valid.upperBound)
        X509_set_pubkey(certificate, subjectKey.pointer)
        set(X509_get_subject_name(certificate), subject)
        set(X509_get_issuer_name(certificate), name)
        for (number, value) in extensions {
            let made = X509V3_EXT_conf_nid(nil, nil, number, value)
            precondition(made != nil && X509_add_ext(certificate, made, -1) == 1, "OpenSSL rejects \(value)")
            X509_EXTENSION_free(made)
        }
        precondition(X509_sign(certificate, key.pointer, EVP_sha256()) > 0)
        return certificate
    }

    private func set(_ name: OpaquePointer?, _ text: String) {
        let bytes = Array(text.utf8)
        X509_NAME_add_entry_by_txt(name, "CN", 0x1000 | 1, bytes, Int32(bytes.count), -1, 0)
    }
}
