// What a certificate says about its holder.

internal import Basics
internal import COpenSSLTLS
internal import Glibc

/// The names of a peer whose certificate has been verified.
package struct TLSPeer: Equatable, Sendable {
    /// URIs of the subject's alternative names, as they are written.
    package var uris: [String]
    /// DNS names of the subject's alternative names, as they are written.
    package var dnsNames: [String]

    /// All names with their kinds: `URI:spiffe://a/b`, `DNS:job.example`.
    package var names: [String] { uris.map { "URI:\($0)" } + dnsNames.map { "DNS:\($0)" } }

    package init(uris: [String] = [], dnsNames: [String] = []) {
        self.uris = uris
        self.dnsNames = dnsNames
    }
}

extension TLSPeer {
    /// Further names of a certificate do not count.
    static let namesMax = 256

    /// Reads a certificate's names. Names with characters other than visible ASCII are left out: a reader could not
    /// distinguish them.
    init(_ certificate: OpaquePointer) {
        self.init()
        guard let found = unsafe X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return }
        let names = OpaquePointer(found)
        defer { unsafe hearth_names_free(names) }
        for index in 0..<min(unsafe hearth_names_count(names), Int32(Self.namesMax)) {
            guard let name = unsafe hearth_names_at(names, index), let text = unsafe Self.text(name) else { continue }
            if unsafe hearth_name_is_dns(name) == 1 { dnsNames.append(text) } else { uris.append(text) }
        }
    }

    private static func text(_ name: UnsafeMutablePointer<GENERAL_NAME>) -> String? {
        guard let string = unsafe hearth_name_text(name), let start = unsafe ASN1_STRING_get0_data(string) else {
            return nil
        }
        // The string is a part of the certificate, and has as many bytes.
        let bytes = unsafe UnsafeBufferPointer(start: start, count: Int(ASN1_STRING_length(string)))
        guard !bytes.isEmpty, unsafe bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        return unsafe String(decoding: bytes, as: UTF8.self)
    }
}

/// A time of a certificate or a revocation list, in seconds since 1970; nil if it is missing or not one.
func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
    var date = unsafe tm()
    guard let time = unsafe time, unsafe ASN1_TIME_to_tm(time, &date) == 1 else { return nil }
    return Int64(unsafe timegm(&date))
}
