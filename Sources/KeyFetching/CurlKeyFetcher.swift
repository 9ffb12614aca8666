// The keys of issuers over HTTPS.

internal import Basics
internal import CCurl
package import Identity

/// Bounds of a fetch.
package struct FetchLimits: Sendable {
    /// Bytes of a response's body.
    package var bytesMax = KeyLimits.fileBytesMax
    /// Time for a connection, its handshake included, in milliseconds.
    package var connectMilliseconds = 5_000
    /// Time for everything, redirects included, in milliseconds. Less than the time after which a fetch is given up.
    package var totalMilliseconds = 20_000
    package var redirectsMax = 3

    package init() {}
}

/// Fetches keys with libcurl, each on a thread, so that no event loop waits. Certificates are verified, and redirects
/// lead to https alone. The environment may name a proxy, as for curl. Thread-safe.
package final class CurlKeyFetcher: KeyFetcher {
    private let authorities: String?
    private let limits: FetchLimits
    private let report: @Sendable (_ url: String, _ reason: String) -> Void

    /// Loads libcurl, once for the process: why that is not possible, or nil.
    private static let loadFailure: String? = unsafe hearth_curl_load().map { unsafe String(cString: $0) }

    /// - Parameters:
    ///   - authorities: a file of the authorities of the issuers' certificates, PEM; nil for those of the system.
    ///   - report: called with each failure, on any thread. The URL has no query.
    package init(
        authorities: String? = nil, limits: FetchLimits = FetchLimits(),
        report: @escaping @Sendable (_ url: String, _ reason: String) -> Void
    ) {
        self.authorities = authorities
        self.limits = limits
        self.report = report
    }

    package func fetch(_ url: String, _ done: @escaping @Sendable (KeyResponse?) -> Void) {
        guard let url = KeyURL(url) else {
            report("the URL of keys", "it is not https")
            return done(nil)
        }
        let work: @Sendable () -> Void = { [self] in done(response(of: url)) }
        do throws(SystemThread.StartFailure) {
            try SystemThread(name: "keys", work).detach()
        } catch {
            report(url.masked, "\(error)")
            done(nil)
        }
    }

    /// Waits for the response.
    private func response(of url: KeyURL) -> KeyResponse? {
        do throws(FetchFailure) {
            if let reason = Self.loadFailure { throw FetchFailure("libcurl is missing: \(reason)") }
            return try Transfer(url, limits, authorities).response()
        } catch {
            report(url.masked, error.reason)
            return nil
        }
    }
}

/// Why there are no keys.
struct FetchFailure: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}
