// Where reads and listeners look for their data.

/// The source of a read.
public enum FirestoreSource: UInt, Sendable {
    /// The server if it can be reached, else the cache.
    case `default`
    /// The server only.
    case server
    /// The cache only.
    case cache
}

/// The source of a listener.
public enum ListenSource: UInt, Sendable {
    /// The cache and the server.
    case `default`
    /// The cache only.
    case cache
}

/// Where an aggregation is computed.
public enum AggregateSource: UInt, Sendable {
    /// On the server.
    case server
}
