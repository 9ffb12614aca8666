// Which host of an address is tried first, if it names several.
//
// libpq tries them in the order of the address. One that does not reply, such as a machine without power, takes all the
// time that there is for a connection, and each further connection would begin with it again. So the host to which a
// connection was made comes first, and one that has not replied comes last.

internal import Synchronization

/// The hosts of an address in the order in which they are tried. A plain value.
struct DatabaseHosts: Equatable {
    private struct Host: Equatable {
        let name: String
        /// Its network address; empty if the name is looked up.
        let address: String
        let port: String
    }

    /// What has become of a connection to a host.
    enum Outcome {
        case connected
        /// It has not replied in time.
        case silent
    }

    private var hosts: [Host]

    var count: Int { hosts.count }

    /// Reads the options of libpq: lists with commas between the entries.
    /// - Returns: nil for one host, and for lists that do not fit.
    init?(names: String, addresses: String, ports: String) {
        func entries(_ list: String) -> [String] {
            list.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
        let (names, addresses, ports) = (entries(names), entries(addresses), entries(ports))
        let count = max(names.count, addresses.count)
        func entry(_ list: [String], _ index: Int) -> String { list.count == 1 ? list[0] : list[index] }
        guard count > 1, [names, addresses, ports].allSatisfy({ $0.count == 1 || $0.count == count }) else {
            return nil
        }
        hosts = (0..<count).map { index in
            Host(name: entry(names, index), address: entry(addresses, index), port: entry(ports, index))
        }
    }

    /// Takes over what has become of a connection.
    ///
    /// - Parameters:
    ///   - host: its name, or its address if it has no name.
    mutating func note(_ outcome: Outcome, host: String, port: String) {
        let found = hosts.firstIndex { ($0.name.isEmpty ? $0.address : $0.name) == host && $0.port == port }
        guard let found else { return }
        let first = outcome == .connected ? found : found + 1
        hosts = Array(hosts[first...] + hosts[..<first])
    }

    /// Keywords and values for libpq.
    var options: [(String, String)] {
        [("host", hosts.map(\.name)), ("hostaddr", hosts.map(\.address)), ("port", hosts.map(\.port))]
            .filter { !$0.1.allSatisfy(\.isEmpty) }.map { ($0.0, $0.1.joined(separator: ",")) }
    }

    // MARK: Of all addresses

    private static let known = Mutex<[String: DatabaseHosts]>([:])

    /// The order for the next connection to an address; nil for that of the address. Thread-safe.
    static subscript(address: String) -> DatabaseHosts? {
        get { known.withLock { $0[address] } }
        set { known.withLock { $0[address] = newValue } }
    }
}
