internal import COpenSSLTLS

/// A version of TLS that is spoken.
package enum TLSVersion: String, Sendable, CaseIterable {
    case tls12 = "1.2"
    case tls13 = "1.3"

    var number: Int32 {
        switch self {
        case .tls12: TLS1_2_VERSION
        case .tls13: TLS1_3_VERSION
        }
    }

    init?(number: Int32) {
        guard let version = Self.allCases.first(where: { $0.number == number }) else { return nil }
        self = version
    }
}
