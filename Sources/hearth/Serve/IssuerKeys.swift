// The keys of all issuers while `hearth serve` runs.

import Basics
import FirestoreService
import Identity
import KeyFetching

/// The keys of all issuers: of files, which a reload reads again, and of URLs. Thread-safe.
final class IssuerKeys: Sendable {
    /// The issuers with their keys.
    let issuers: [TokenIssuer]
    private let fixed: [(path: String, keys: FixedKeys)]
    private let remote: [(url: KeyURL, keys: RemoteKeys)]

    /// Reads the files; nothing is fetched before ``tick()``.
    ///
    /// - Parameter authorities: a file of those who may sign the certificates of URLs; nil for those of the system.
    init(_ settings: [IssuerSettings], authorities: String?, _ log: Log) throws(CommandFailure) {
        if let authorities { _ = try InputFile.contents(of: authorities) }
        let fetcher = CurlKeyFetcher(authorities: authorities) { url, reason in
            log(.warning, "keys_not_fetched", ["url": url, "message": reason])
        }
        var issuers: [TokenIssuer] = []
        var fixed: [(path: String, keys: FixedKeys)] = []
        var remote: [(url: KeyURL, keys: RemoteKeys)] = []
        for setting in settings {
            switch setting.source {
            case .path(let path):
                let keys = FixedKeys(try Self.keySet(path))
                fixed.append((path, keys))
                issuers.append(setting.issuer(keys))
            case .url(let url):
                let keys = RemoteKeys(url: url.text, fetcher: fetcher) {
                    Int64(clamping: SystemClock.monotonicMilliseconds() / 1_000)
                }
                remote.append((url, keys))
                issuers.append(setting.issuer(keys))
            }
        }
        (self.issuers, self.fixed, self.remote) = (issuers, fixed, remote)
    }

    private static func keySet(_ path: String) throws(CommandFailure) -> KeySet {
        do throws(KeyFault) {
            return try KeySet.read(path)
        } catch {
            throw CommandFailure("\(error)")
        }
    }

    /// What the files hold now.
    func read() throws(CommandFailure) -> [KeySet] {
        var sets: [KeySet] = []
        for source in fixed { sets.append(try Self.keySet(source.path)) }
        return sets
    }

    /// Replaces the keys of files with the result of ``read()``.
    func replace(_ sets: [KeySet]) {
        for (source, set) in zip(fixed, sets) { source.keys.replace(set) }
    }

    /// Begins to fetch keys that have expired.
    func tick() {
        for source in remote { source.keys.tick() }
    }

    /// A line for each place that keys come from.
    var summary: [String] {
        fixed.map { "keys: \($0.path), \($0.keys.keys.count) keys" } + remote.map { "keys: \($0.url.masked)" }
    }
}
