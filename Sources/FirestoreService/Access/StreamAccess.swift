internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import Listening
internal import Storage

/// What the client of a stream may do, for as long as the stream lasts. Confined to the loop.
final class StreamAccess {
    private let service: FirestoreService
    private let call: Call
    private let database: DatabaseName
    private var generation: Int
    /// The access that counts the targets of the stream: the first one.
    private let counting: (any CallAccess)?
    /// Nil if that is everything.
    private(set) var current: (any CallAccess)?

    /// - Throws: `UNAUTHENTICATED`, `PERMISSION_DENIED`.
    init(_ service: FirestoreService, _ call: Call, _ database: DatabaseName) throws(RequestError) {
        self.service = service
        self.call = call
        self.database = database
        generation = service.accessControl?.generation ?? 0
        let name = database.utf8
        counting = try service.admit(call, name.byteSpan)
        current = counting
    }

    /// Looks again at the credential, and at what has changed since.
    ///
    /// - Returns: whether decisions may come out otherwise than before.
    /// - Throws: `UNAUTHENTICATED`, `PERMISSION_DENIED`.
    func renew() throws(RequestError) -> Bool {
        guard let control = service.accessControl else { return false }
        let generation = control.generation
        if generation == self.generation {
            try current?.checkStillValid()
            return false
        }
        self.generation = generation
        let name = database.utf8
        current = try service.admit(call, name.byteSpan)
        return true
    }
}

/// Judges the targets of a stream by what its client may do at that moment.
extension StreamAccess: TargetJudge {
    func judge(
        query: StructuredQuery, parent: RawSpan, at version: UInt64, _ cold: ColdRead
    ) throws(RequestError) -> [[UInt8]] {
        guard let current, !current.isUnrestricted else { return [] }
        let view = try ResourceNameView(resource: parent)
        return try current.checkList(query, parent: view.pathBytes, try state(at: version, cold))
    }

    func judge(
        document path: RawSpan, at version: UInt64, _ cold: ColdRead
    ) throws(RequestError) -> [[UInt8]] {
        guard let current, !current.isUnrestricted else { return [] }
        return try current.checkGet(path, try state(at: version, cold))
    }

    func openTarget() throws(RequestError) { try counting?.openListener() }

    func closeTarget() { counting?.closeListener() }

    private func state(at version: UInt64, _ cold: ColdRead) throws(RequestError) -> JudgedState {
        let time = TimestampValue(microseconds: Int64(clamping: version))
        return JudgedState(service.reader, try service.reader.readPoint(.time(time), in: database), cold)
    }
}
