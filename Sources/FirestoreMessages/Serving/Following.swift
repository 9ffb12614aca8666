// The messages of `hearth.admin.v1.Admin/Follow`, by which a replica gets the state and the commits of a server.

package import Basics
internal import DocumentModel

/// What a replica has.
package struct FollowRequest: FirestoreMessage, Equatable, Sendable {
    /// The version of its last commit, in microseconds; 0 if it has nothing.
    package var version: UInt64
    /// The time from which its history is that of its source alone, in microseconds.
    package var timeline: UInt64
    /// A number by which the source knows the replica again; 0 for none.
    package var follower: UInt64
    /// The last group that a server of a cluster has; nil for a replica.
    package var place: LogPlaceMessage?

    package init(version: UInt64, timeline: UInt64, follower: UInt64 = 0, place: LogPlaceMessage? = nil) {
        self.version = version
        self.timeline = timeline
        self.follower = follower
        self.place = place
    }

    package init(wire: RawSpan) throws {
        (version, timeline, follower, place) = (0, 0, 0, nil)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: version = try reader.uint64(tag)
            case 2: timeline = try reader.uint64(tag)
            case 3: follower = try reader.uint64(tag)
            case 4: place = try LogPlaceMessage(wire: reader.span(tag))
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.appendField(1, version)
        writer.appendField(2, timeline)
        if follower != 0 { writer.appendField(3, follower) }
        if let place { writer.appendField(4, place.encodedBytes()) }
    }
}

/// The end of what a server of a cluster has of the log.
package struct LogPlaceMessage: FirestoreMessage, Equatable, Sendable {
    /// The identity of the store.
    package var storeHigh: UInt64
    package var storeLow: UInt64
    /// Of the last group; 0 before the first.
    package var sequence: UInt64
    /// Of the chain of groups up to it.
    package var hash: UInt64

    package init(storeHigh: UInt64, storeLow: UInt64, sequence: UInt64, hash: UInt64) {
        self.storeHigh = storeHigh
        self.storeLow = storeLow
        self.sequence = sequence
        self.hash = hash
    }

    package init(wire: RawSpan) throws {
        (storeHigh, storeLow, sequence, hash) = (0, 0, 0, 0)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: storeHigh = try reader.uint64(tag)
            case 2: storeLow = try reader.uint64(tag)
            case 3: sequence = try reader.uint64(tag)
            case 4: hash = try reader.uint64(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.appendField(1, storeHigh)
        writer.appendField(2, storeLow)
        writer.appendField(3, sequence)
        writer.appendField(4, hash)
    }
}

/// Asks a server to take no more writes.
package struct StepDownRequest: FirestoreMessage, Equatable, Sendable {
    /// The number of the replica that takes its place; 0 for what administers the server itself.
    package var successor: UInt64

    package init(successor: UInt64 = 0) { self.successor = successor }

    package init(wire: RawSpan) throws { successor = try FollowRequest(wire: wire).version }

    package func encode(into writer: inout ByteBuffer) { writer.appendField(1, successor) }
}

/// What a server that takes no writes any more has.
package struct StepDownResponse: FirestoreMessage, Equatable, Sendable {
    /// The version of its last commit, in microseconds.
    package var version: UInt64

    package init(version: UInt64) { self.version = version }

    package init(wire: RawSpan) throws { version = try FollowRequest(wire: wire).version }

    package func encode(into writer: inout ByteBuffer) { writer.appendField(1, version) }
}

/// A message of the stream to a replica. Each has one of these.
package enum FollowResponse: FirestoreMessage, Equatable, Sendable {
    /// Commits follow that come after what the replica has.
    case accepted(timeline: UInt64)
    /// The replica has to replace what it has. Files follow, of so many bytes, and then the stream ends.
    case base(reason: String, bytes: UInt64)
    /// A file of the base begins: its path in the data directory.
    case file(String)
    /// The next bytes of the file.
    case contents([UInt8])
    /// All files were sent.
    case baseIsComplete
    /// Commits: for each the version (8 bytes, little-endian), the length (4) and the record.
    case records([UInt8])
    /// No commit comes at or below this time, in microseconds, that was not sent.
    case closed(UInt64)
    /// What the source has derived from records that were sent: for each the version (8 bytes, little-endian) and a
    /// hash (8).
    case derived([UInt8])
    /// The security rules that the data directory of the source keeps.
    case rules(String)
    /// Durable groups of the log of a cluster, encoded by it.
    case groups([UInt8])
    /// Users who were revoked at the source: for each the moment (8 bytes, little-endian), the length of the identifier
    /// (4) and the identifier.
    case revocations([UInt8])

    /// Whether it is one of those before the first commits of a stream: all rules and revocations of that moment are
    /// among them.
    package var isOpening: Bool {
        switch self {
        case .accepted, .rules, .revocations: true
        default: false
        }
    }

    package init(wire: RawSpan) throws {
        var reader = WireReader(wire)
        var found: FollowResponse?
        var bytes: UInt64 = 0
        var reason: String?
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: found = .accepted(timeline: try reader.uint64(tag))
            case 2: reason = try reader.string(tag)
            case 3: bytes = try reader.uint64(tag)
            case 4: found = .file(try reader.string(tag))
            case 5: found = .contents(try reader.byteArray(tag))
            case 6: found = try reader.boolean(tag) ? .baseIsComplete : found
            case 7: found = .records(try reader.byteArray(tag))
            case 8: found = .closed(try reader.uint64(tag))
            case 9: found = .derived(try reader.byteArray(tag))
            case 10: found = .rules(try reader.string(tag))
            case 11: found = .groups(try reader.byteArray(tag))
            case 12: found = .revocations(try reader.byteArray(tag))
            default: try reader.skip(tag)
            }
        }
        if let reason { found = .base(reason: reason, bytes: bytes) }
        guard let found else { throw RequestError(.invalidArgument, "a message of Follow has no content") }
        self = found
    }

    package func encode(into writer: inout ByteBuffer) {
        switch self {
        case .accepted(let timeline): writer.appendField(1, timeline)
        case .base(let reason, let bytes):
            writer.appendField(2, Array(reason.utf8))
            writer.appendField(3, bytes)
        case .file(let path): writer.appendField(4, Array(path.utf8))
        case .contents(let bytes): writer.appendField(5, bytes)
        case .baseIsComplete: writer.appendField(6, 1)
        case .records(let bytes): writer.appendField(7, bytes)
        case .closed(let time): writer.appendField(8, time)
        case .derived(let bytes): writer.appendField(9, bytes)
        case .rules(let text): writer.appendField(10, Array(text.utf8))
        case .groups(let bytes): writer.appendField(11, bytes)
        case .revocations(let bytes): writer.appendField(12, bytes)
        }
    }
}

extension ByteBuffer {
    fileprivate mutating func appendField(_ number: UInt8, _ value: UInt64) {
        append(byte: number << 3)
        appendVarint(value)
    }

    fileprivate mutating func appendField(_ number: UInt8, _ value: [UInt8]) {
        append(byte: number << 3 | 2)
        appendVarint(UInt64(value.count))
        append(value)
    }
}
