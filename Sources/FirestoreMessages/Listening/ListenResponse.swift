package import DocumentModel

/// A message of the server's side of a Listen stream, as a client reads it.
package enum ListenResponse: Equatable, Sendable {
    case targetChange(TargetChange)
    case documentChange(DocumentChange)
    case documentDelete(DocumentRemoval)
    case documentRemove(DocumentRemoval)
    case filter(ExistenceFilter)
    /// A message without a response type that this client knows.
    case unknown

    /// A change of the state of targets.
    package struct TargetChange: Equatable, Sendable {
        /// Values of `TargetChange.TargetChangeType`.
        package enum Kind: Int32, Sendable {
            case noChange = 0
            case add = 1
            case remove = 2
            case current = 3
            case reset = 4
        }

        package var kind: Kind
        /// Empty for all targets of the stream.
        package var targets: [Int32] = []
        /// The error for which the server removed the targets.
        package var cause: StatusMessage?
        package var resumeToken: [UInt8] = []
        package var readTime: TimestampValue?

        package init(_ kind: Kind, targets: [Int32] = []) {
            self.kind = kind
            self.targets = targets
        }
    }

    /// A new or changed document.
    package struct DocumentChange: Equatable, Sendable {
        /// The bytes of the `Document`.
        package var document: [UInt8] = []
        /// The targets that the document matches.
        package var targets: [Int32] = []
        /// The targets that it does not match any more.
        package var removedTargets: [Int32] = []

        package init(document: [UInt8] = [], targets: [Int32] = [], removedTargets: [Int32] = []) {
            self.document = document
            self.targets = targets
            self.removedTargets = removedTargets
        }
    }

    /// A document that was deleted, or that no target matches any more.
    package struct DocumentRemoval: Equatable, Sendable {
        package var name = ""
        package var removedTargets: [Int32] = []
        package var readTime: TimestampValue?

        package init(name: String = "", removedTargets: [Int32] = [], readTime: TimestampValue? = nil) {
            self.name = name
            self.removedTargets = removedTargets
            self.readTime = readTime
        }
    }

    /// The number of documents that match a target.
    package struct ExistenceFilter: Equatable, Sendable {
        package var target: Int32 = 0
        package var count: Int32 = 0
        package var unchangedNames: BloomFilter?

        package init(target: Int32 = 0, count: Int32 = 0, unchangedNames: BloomFilter? = nil) {
            self.target = target
            self.count = count
            self.unchangedNames = unchangedNames
        }
    }

    package init(wire: RawSpan) throws {
        typealias Field = FieldNumber.ListenResponse
        self = .unknown
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.targetChange: self = .targetChange(try TargetChange(wire: try reader.span(tag)))
            case Field.documentChange: self = .documentChange(try DocumentChange(wire: try reader.span(tag)))
            case Field.documentDelete:
                self = .documentDelete(
                    try DocumentRemoval(
                        wire: try reader.span(tag), targets: FieldNumber.DocumentDelete.removedTargetIds))
            case Field.documentRemove:
                self = .documentRemove(
                    try DocumentRemoval(
                        wire: try reader.span(tag), targets: FieldNumber.DocumentRemove.removedTargetIds))
            case Field.filter: self = .filter(try ExistenceFilter(wire: try reader.span(tag)))
            default: try reader.skip(tag)
            }
        }
    }
}

extension WireReader {
    /// Appends the target ids of one occurrence of a repeated field.
    @_lifetime(self: copy self)
    fileprivate mutating func targetIDs(_ tag: WireTag, _ ids: inout [Int32]) throws(InvalidDocument) {
        var read: [Int32] = []
        try repeatedVarints(tag) { read.append(Int32(truncatingIfNeeded: $0)) }
        ids += read
    }
}

extension ListenResponse.TargetChange {
    fileprivate init(wire: RawSpan) throws {
        typealias Field = FieldNumber.TargetChange
        self.init(.noChange)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.targetChangeType:
                let number = try reader.int32(tag)
                guard let kind = Kind(rawValue: number) else {
                    throw InvalidDocument(.invalidTag, offset: reader.position)
                }
                self.kind = kind
            case Field.targetIds: try reader.targetIDs(tag, &targets)
            case Field.cause: cause = try StatusMessage(wire: try reader.span(tag))
            case Field.resumeToken: resumeToken = try reader.byteArray(tag)
            case Field.readTime: readTime = try reader.timestamp(tag)
            default: try reader.skip(tag)
            }
        }
    }
}

extension ListenResponse.DocumentChange {
    fileprivate init(wire: RawSpan) throws {
        typealias Field = FieldNumber.DocumentChange
        self.init()
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.document: document = try reader.byteArray(tag)
            case Field.targetIds: try reader.targetIDs(tag, &targets)
            case Field.removedTargetIds: try reader.targetIDs(tag, &removedTargets)
            default: try reader.skip(tag)
            }
        }
    }
}

extension ListenResponse.DocumentRemoval {
    /// - Parameter targets: the number of the field with the target ids, in which the two kinds of messages differ.
    fileprivate init(wire: RawSpan, targets: Int) throws {
        typealias Field = FieldNumber.DocumentDelete
        self.init()
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.document: name = try reader.string(tag)
            case Field.readTime: readTime = try reader.timestamp(tag)
            case targets: try reader.targetIDs(tag, &removedTargets)
            default: try reader.skip(tag)
            }
        }
    }
}

extension ListenResponse.ExistenceFilter {
    fileprivate init(wire: RawSpan) throws {
        typealias Field = FieldNumber.ExistenceFilter
        self.init()
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.targetId: target = try reader.int32(tag)
            case Field.count: count = try reader.int32(tag)
            case Field.unchangedNames: unchangedNames = try BloomFilter(wire: try reader.span(tag))
            default: try reader.skip(tag)
            }
        }
    }
}
