import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
internal import QueryEngine

/// Messages of a stream that are ready to be sent.
///
/// It holds one page: the code that fills it stops when it is full. An empty queue holds no memory.
struct MessageQueue: ~Copyable {
    /// The start of every document name: `projects/{project}/databases/{database}/documents/`.
    let namePrefix: [UInt8]
    private var bytes = ByteBuffer(capacity: 0)
    private var ends: [Int] = []
    private var next = 0
    /// Messages appended so far.
    private(set) var appended = 0

    /// Bytes after which a page is sent.
    static let pageBytes = 64 << 10

    init(namePrefix: [UInt8]) { self.namePrefix = namePrefix }

    var isEmpty: Bool { next == ends.count }
    /// Memory of the page, in bytes, with the ends of its messages.
    var byteCount: Int { bytes.count + ends.count * MemoryLayout<Int>.stride }
    var isFull: Bool { bytes.count >= Self.pageBytes }

    /// Moves the next message to `output`; false if there is none.
    mutating func pop(into output: inout ByteBuffer) -> Bool {
        guard next < ends.count else { return false }
        output.append(message(at: next))
        next += 1
        if next == ends.count { removeAll() }
        return true
    }

    mutating func removeAll() {
        bytes = ByteBuffer(capacity: 0)
        ends = []
        next = 0
    }

    @_lifetime(borrow self)
    private func message(at index: Int) -> RawSpan {
        bytes.bytes.extracting((index == 0 ? 0 : ends[index - 1])..<ends[index])
    }

    /// Removes a target: REMOVE is the next message, after the target's ADD if that is still here, and nothing else of
    /// the target stays. Messages that concern other targets as well stay for those.
    mutating func remove(_ target: Int32, cause: RequestError) {
        var add = ByteBuffer(capacity: 16)
        ListenResponseWriter.append(.add, targets: [target], to: &add)
        var start = next
        for index in next..<ends.count where message(at: index).equalsBytes(add.bytes) { start = index + 1 }

        var rest = MessageQueue(namePrefix: namePrefix)
        for index in next..<start {
            rest.bytes.append(message(at: index))
            rest.messageEnds()
        }
        rest.append(.remove, [target], cause: cause)
        for index in start..<ends.count
        where ListenResponseWriter.append(message(at: index), without: target, to: &rest.bytes) {
            rest.messageEnds()
        }
        // The count never goes back.
        rest.appended = appended + 1
        self = rest
    }

    private mutating func messageEnds() {
        ends.append(bytes.count)
        appended += 1
    }

    // MARK: Messages

    /// A change of the state of targets.
    mutating func append(
        _ kind: ListenResponse.TargetChange.Kind, _ targets: [Int32], cause: RequestError? = nil, at time: UInt64? = nil
    ) {
        let status = cause.map { StatusMessage(code: $0.code, message: $0.message) }
        ListenResponseWriter.append(kind, targets: targets, cause: status, at: time, to: &bytes)
        messageEnds()
    }

    /// A document that matches some targets and has stopped to match others.
    ///
    /// - Parameter selection: the fields to send; nil sends all.
    mutating func appendChange(
        _ document: EncodedDocument, _ path: RawSpan, _ selection: FieldSelection?, targets: [Int32],
        removed: [Int32] = []
    ) {
        let message = document.bytes
        if let selection {
            let document = LentDocument(document, message.byteSpan.extracting(document.fields), path: path)
            return appendChange(document, selection, targets: targets, removed: removed)
        }
        ListenResponseWriter.appendChange(document: message.byteSpan, targets: targets, removed: removed, to: &bytes)
        messageEnds()
    }

    /// A document that matches some targets and has stopped to match others.
    ///
    /// - Parameter selection: the fields to send; nil sends all.
    mutating func appendChange(
        _ document: LentDocument, _ selection: FieldSelection?, targets: [Int32], removed: [Int32]
    ) {
        if let selection {
            var fields = ByteBuffer(capacity: 256)
            selection.append(document.fields, into: &fields)
            appendChange(document, fields.bytes, targets, removed)
        } else {
            appendChange(document, document.fields, targets, removed)
        }
    }

    private mutating func appendChange(
        _ document: LentDocument, _ fields: RawSpan, _ targets: [Int32], _ removed: [Int32]
    ) {
        let prefix = namePrefix
        ListenResponseWriter.appendChange(
            ListenResponseWriter.Name(prefix: prefix.byteSpan, path: document.path), fields: fields,
            createMicroseconds: document.createMicroseconds, updateMicroseconds: document.updateMicroseconds,
            targets: targets, removed: removed, to: &bytes)
        messageEnds()
    }

    /// A document that does not exist.
    mutating func appendDelete(_ path: RawSpan, removed: [Int32], at time: UInt64) {
        let prefix = namePrefix
        ListenResponseWriter.appendDelete(
            ListenResponseWriter.Name(prefix: prefix.byteSpan, path: path), removed: removed, at: time, to: &bytes)
        messageEnds()
    }

    /// A document that exists, has not changed, and matches some targets no more.
    mutating func appendRemove(_ path: RawSpan, removed: [Int32], at time: UInt64) {
        let prefix = namePrefix
        ListenResponseWriter.appendRemove(
            ListenResponseWriter.Name(prefix: prefix.byteSpan, path: path), removed: removed, at: time, to: &bytes)
        messageEnds()
    }

    /// The number of documents that match a target.
    mutating func appendFilter(_ target: Int32, count: Int, names: BloomFilter?) {
        ListenResponseWriter.appendFilter(target: target, count: Int32(clamping: count), unchanged: names, to: &bytes)
        messageEnds()
    }
}
