// The messages of `hearth.admin.v1.Admin/Forward`, by which a follower has another server answer a call.

package import Basics
internal import DocumentModel

/// The first message of a forwarded call, lent.
package struct ForwardRequestView: ~Escapable {
    private typealias Field = FieldNumber.Admin.ForwardRequest

    /// The method's number in the native protocol.
    package private(set) var method: UInt64 = 0
    /// Who calls, in a form of the access control.
    package private(set) var caller: RawSpan
    /// The caller's address: 4 or 16 bytes; empty for none.
    package private(set) var address: RawSpan
    package private(set) var approach = ForwardedApproach()
    /// A number for the client's connection to the follower.
    package private(set) var client: UInt64 = 0
    /// The store that the call is for.
    package private(set) var store = CalledStore()
    /// The first message of the call.
    package private(set) var message: RawSpan

    @_lifetime(copy wire)
    package init(_ wire: RawSpan) throws {
        caller = wire.extracting(first: 0)
        address = caller
        message = caller
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.method: method = try reader.uint64(tag)
            case Field.caller: caller = try reader.span(tag)
            case Field.address: address = try reader.span(tag)
            case Field.approach:
                approach = ForwardedApproach(rawValue: UInt8(truncatingIfNeeded: try reader.uint64(tag)))
            case Field.client: client = try reader.uint64(tag)
            case Field.storeHigh: store.high = try reader.uint64(tag)
            case Field.storeLow: store.low = try reader.uint64(tag)
            case Field.message: message = try reader.span(tag)
            default: try reader.skip(tag)
            }
        }
    }
}

/// How the client of a forwarded call came to the follower.
package struct ForwardedApproach: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let loopback = ForwardedApproach(rawValue: 1)
    package static let proxied = ForwardedApproach(rawValue: 2)
    package static let trustedProxy = ForwardedApproach(rawValue: 4)
}

/// What a follower says of a forwarded call besides its messages.
package struct ForwardedHead: Sendable {
    private typealias Field = FieldNumber.Admin.ForwardRequest

    package var method: Method
    package var caller: [UInt8]
    package var address: [UInt8]
    package var approach: ForwardedApproach
    package var client: UInt32
    package var store: CalledStore

    package init(
        method: Method, caller: [UInt8], address: [UInt8] = [], approach: ForwardedApproach = .loopback,
        client: UInt32 = 0, store: CalledStore = CalledStore()
    ) {
        self.method = method
        self.caller = caller
        self.address = address
        self.approach = approach
        self.client = client
        self.store = store
    }

    /// The first message of a forwarded call.
    ///
    /// - Parameters:
    ///   - message: of the call; it goes as it is.
    ///   - suffix: appended to the message.
    package func request(_ message: RawSpan, suffix: [UInt8] = []) -> [UInt8] {
        var writer = ByteBuffer(capacity: message.byteCount + caller.count + suffix.count + 96)
        writer.appendField(Field.method, varint: UInt64(method.rawValue))
        writer.appendField(Field.caller, bytes: caller)
        writer.writeIfSet(Field.address, bytes: address)
        writer.appendField(Field.approach, varint: UInt64(approach.rawValue))
        writer.appendField(Field.client, varint: UInt64(client))
        store.encode(high: Field.storeHigh, low: Field.storeLow, into: &writer)
        writer.appendTag(field: Field.message, .lengthDelimited)
        writer.appendVarint(UInt64(message.byteCount + suffix.count))
        writer.append(message)
        writer.append(suffix)
        return writer.copyBytes()
    }
}

/// The identity of the store of a cluster for which a server calls another one; zero outside of a cluster. The address
/// of a server may lead to one of another cluster.
package struct CalledStore: Equatable, Sendable {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64 = 0, low: UInt64 = 0) {
        self.high = high
        self.low = low
    }

    package var isNamed: Bool { high != 0 || low != 0 }

    /// Appends the two fields of a message; nothing outside of a cluster.
    ///
    /// - Parameters:
    ///   - highField: the number of the field with the upper half.
    ///   - lowField: that of the field with the lower half.
    func encode(high highField: Int, low lowField: Int, into writer: inout ByteBuffer) {
        guard isNamed else { return }
        writer.appendField(highField, varint: high)
        writer.appendField(lowField, varint: low)
    }
}

/// Asks for the newest commit of a store.
package struct NewestVersionRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.Admin.NewestVersionRequest

    /// The name of the store, if the servers share several; empty for the only one.
    package var store: String
    package var identity: CalledStore

    package init(store: String, _ identity: CalledStore = CalledStore()) {
        self.store = store
        self.identity = identity
    }

    package init(wire: RawSpan) throws {
        self.init(store: "")
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.store: store = try reader.string(tag)
            case Field.storeHigh: identity.high = try reader.uint64(tag)
            case Field.storeLow: identity.low = try reader.uint64(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        if !store.isEmpty { writer.appendField(Field.store, string: store) }
        identity.encode(high: Field.storeHigh, low: Field.storeLow, into: &writer)
    }
}

/// The version before each reply to a forwarded call.
package enum ForwardedReply {
    package static let versionBytes = 8

    package static func append(version: UInt64, to writer: inout ByteBuffer) { writer.append(littleEndian: version) }

    /// The version and the message of a reply; nil if it is shorter than a version.
    package static func version(of reply: RawSpan) -> UInt64? {
        guard reply.byteCount >= versionBytes else { return nil }
        return (0..<versionBytes).reversed().reduce(0) { $0 << 8 | UInt64(reply[byteAt: $1]) }
    }

    @_lifetime(copy reply)
    package static func message(of reply: RawSpan) -> RawSpan { reply.extracting(droppingFirst: versionBytes) }
}

extension CreateDocumentRequest {
    /// What to append to a request without a document id, so that a repetition creates the same document.
    package static func suffix(documentID: String) -> [UInt8] {
        var writer = ByteBuffer(capacity: 32)
        writer.appendField(FieldNumber.CreateDocumentRequest.documentId, string: documentID)
        return writer.copyBytes()
    }
}

extension ReadConsistency {
    /// What a reading request says about the state that it reads, without the rest of the request.
    package init(of method: Method, in request: RawSpan) throws {
        self = .latest
        let fields: Fields
        switch method {
        case .getDocument: fields = GetDocumentRequest.consistencyFields
        case .batchGetDocuments: fields = BatchGetDocumentsRequest.consistencyFields
        case .runQuery: fields = RunQueryRequest.consistencyFields
        case .runAggregationQuery: fields = RunAggregationQueryRequest.consistencyFields
        case .executePipeline: fields = ExecutePipelineRequest.consistencyFields
        case .listDocuments:
            typealias Field = FieldNumber.ListDocumentsRequest
            fields = Fields(transaction: Field.transaction, newTransaction: nil, readTime: Field.readTime)
        case .listCollectionIds:
            fields = Fields(
                transaction: nil, newTransaction: nil, readTime: FieldNumber.ListCollectionIdsRequest.readTime)
        case .partitionQuery:
            fields = Fields(transaction: nil, newTransaction: nil, readTime: FieldNumber.PartitionQueryRequest.readTime)
        default: return
        }
        var reader = WireReader(request)
        while let tag = try reader.nextTag() {
            if try !read(tag, from: &reader, fields) { try reader.skip(tag) }
        }
    }
}
