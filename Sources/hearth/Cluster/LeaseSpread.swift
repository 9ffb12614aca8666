// Which server leads which store: about as many each.

/// Decides when a server hands a store over. A plain value.
struct LeaseSpread {
    /// How long the leases must be uneven, in looks of a second each.
    static let looksMin = 10

    private var unevenLooks = 0

    /// One look at the leaders.
    ///
    /// - Parameters:
    ///   - own: the address of this server.
    ///   - leaders: the address of the leader of each store that has one.
    ///   - servers: the addresses of the servers that can lead all stores.
    /// - Returns: a store of this server, and who shall lead it: the server that leads the fewest, if it leads at least
    ///   two fewer than this one. At most one in ten seconds.
    mutating func look(
        _ own: String, leaders: [String: String], servers: Set<String>
    ) -> (store: String, server: String)? {
        let mine = leaders.filter { $0.value == own }.keys
        let counts = servers.subtracting([own]).map { server in
            (server: server, count: leaders.values.count { $0 == server })
        }
        guard let fewest = counts.min(by: { ($0.count, $0.server) < ($1.count, $1.server) }),
            mine.count >= fewest.count + 2, let store = mine.max()
        else {
            unevenLooks = 0
            return nil
        }
        unevenLooks += 1
        if unevenLooks < Self.looksMin { return nil }
        unevenLooks = 0
        return (store, fewest.server)
    }
}
