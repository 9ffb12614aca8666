// Groups and totals over plain fields of the documents that a query reads.
//
//     collection(c) | where(...) | aggregate(count(), sum(price) by genre)
//
// No rows are made: the documents are looked at where they lie in the storage. The bytes of a document's groups lead to
// their place in a table. Groups that are equal and have other bytes, as 1 and 1.0, lead to the same place.

internal import Basics
internal import DocumentModel
internal import Expressions
internal import QueryEngine

/// Takes what a read finds, in the place of its queue.
protocol DocumentSink: AnyObject {
    /// Takes a document, which is lent until the call returns.
    func take(_ document: borrowing QueryRow) throws(RequestError) -> PageControl

    /// Whether it wants nothing of the documents but their number.
    var takesNumberAlone: Bool { get }

    /// Takes documents of which only the number is known.
    func take(count: Int)
}

/// A field with the place of its value in the result.
struct NamedField {
    /// As the request writes it.
    let name: String
    let field: FieldPath

    /// The fields that lead to the place: a name with dots is a path.
    var path: [String] { (try? FieldPath(name))?.segments ?? [name] }
}

/// A row for each group, as ``RowAggregate``. Groups and accumulators take fields of the documents.
final class DocumentAggregate: PipelineOperator, DocumentSink {
    private let read: PipelineRead
    /// The fields of the groups, then those of the accumulators.
    private var values: FieldValues
    /// Of each accumulator the place of its field in `values`; nil for one that counts rows.
    private let fields: [Int?]
    private let groups: [NamedField]
    private var totals: GroupedTotals
    /// Nil without groups.
    private var places: GroupPlaces?
    /// Bytes of memory that the pipeline has not been asked for yet.
    private var owedBytes = 0
    private var position = 0
    private var hasCollected = false

    /// What the documents since the last step have cost, in bytes that could be copied meanwhile.
    private var workBytes = 0

    /// Bytes owed after which a step of the read ends, and work after which it does.
    private static let (owedBytesMax, workBytesMax) = (1 << 20, 16 << 20)
    /// What it costs to add one value.
    private static let addingCost = 128

    /// - Parameter fields: those of the accumulators, in their order; nil counts rows.
    init(_ read: PipelineRead, _ accumulators: [NamedAccumulator], over fields: [FieldPath?], by groups: [NamedField]) {
        self.read = read
        self.groups = groups
        var paths = groups.map(\.field)
        self.fields = fields.map { field in
            guard let field else { return nil }
            paths.append(field)
            return paths.count - 1
        }
        values = FieldValues(paths)
        totals = GroupedTotals(accumulators)
        if groups.isEmpty { owedBytes += totals.add(.map(OperandMap()), keyBytes: 0) }
        if !groups.isEmpty { places = GroupPlaces() }
        read.sink = self
    }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        try work.hold(owedBytes, for: "aggregate")
        (owedBytes, workBytes) = (0, 0)
        if !hasCollected {
            let pulled = try next(read, work)
            guard case .finished = pulled else { return pulled }
            hasCollected = true
        }
        guard position < totals.count else { return .finished }
        position += 1
        return .row(totals.row(of: position - 1))
    }

    // MARK: Documents

    var takesNumberAlone: Bool { groups.isEmpty && fields.allSatisfy { $0 == nil } }

    func take(count: Int) {
        for index in fields.indices { totals.add(rows: count, to: index, of: 0) }
    }

    func take(_ document: borrowing QueryRow) throws(RequestError) -> PageControl {
        try values.locate(in: document.fields)
        workBytes += values.searchCost(document.fields.byteCount) + Self.addingCost * fields.count
        let place = groups.isEmpty ? 0 : try place(of: document.fields)
        for (index, field) in fields.enumerated() {
            guard let field else {
                try add(.boolean(true), to: index, of: place)
                continue
            }
            guard let value = values.value(field, in: document.fields) else {
                try add(.absent, to: index, of: place)
                continue
            }
            try add(operand(value, for: totals.accumulators[index].kind), to: index, of: place)
        }
        return owedBytes < Self.owedBytesMax && workBytes < Self.workBytesMax ? .more : .full
    }

    private func add(_ value: Operand, to accumulator: Int, of place: Int) throws(RequestError) {
        owedBytes += try totals.add(value, to: accumulator, of: place)
    }

    /// The operand of a value, or another one that counts as much for the accumulator.
    private func operand(_ value: RawSpan, for kind: Accumulator.Kind) -> Operand {
        switch kind {
        case .count, .sum, .average:
            guard let wire = WireValue(value) else { return .absent }
            if kind == .count { return wire.isNull ? .null : .boolean(true) }
            switch wire.number {
            case .integer(let number)?: return .integer(number)
            case .double(let number)?: return .double(number)
            case nil: return .absent
            }
        default: return Operand(EncodedValue(canonical: [UInt8](copying: value)))
        }
    }

    /// The place of the group of a document.
    private func place(of document: RawSpan) throws(RequestError) -> Int {
        if let known = places?.find(groups.count, of: values, in: document) { return known }
        let values = groups.indices.map { index -> Operand in
            guard let value = self.values.value(index, in: document) else { return .absent }
            return Operand(EncodedValue(canonical: [UInt8](copying: value)))
        }
        let key = try DocumentAggregate.key(of: values)
        owedBytes += 64 + (places?.foundByteCount ?? 0)
        if let known = places?.note(equal: key) { return known }
        let group = Operand.map([:]).setting(zip(groups, values).map { ($0.path[...], $1) })
        owedBytes += totals.add(group, keyBytes: key.count)
        places?.noteNew(key, at: totals.count - 1)
        return totals.count - 1
    }

    /// Bytes that are equal for equal values.
    private static func key(of values: [Operand]) throws(RequestError) -> [UInt8] {
        var writer = ByteBuffer(capacity: 64)
        do {
            for value in values { try value.appendKey(into: &writer) }
        } catch {
            throw RequestError(error)
        }
        return writer.copyBytes()
    }

    var line: String { totals.line(by: groups.map(\.name).joined(separator: ", ")) }

    var inputs: [any PipelineOperator] { [read] }
}

/// The values of several fields in one document after the other.
private struct FieldValues {
    private let fields: [FieldPath]
    /// The fields in their order, each once; empty if they are so few that each is looked for by itself.
    private var sorted: [FieldPath] = []
    /// The places of the fields in `sorted`.
    private var places: [Int] = []
    /// Where the values of `sorted` lie in the last document.
    private var ranges: [Range<Int>?] = []

    /// More fields than these are found in one pass over a document.
    private static let singlyMax = 8

    init(_ fields: [FieldPath]) {
        self.fields = fields
        if fields.count <= Self.singlyMax { return }
        sorted = Set(fields).sorted { $0.precedes($1) }
        let placesByField = Dictionary(uniqueKeysWithValues: zip(sorted, sorted.indices))
        places = fields.compactMap { placesByField[$0] }
    }

    /// To be called for each document before its values are asked for.
    mutating func locate(in document: RawSpan) throws(RequestError) {
        if sorted.isEmpty { return }
        do throws(InvalidDocument) {
            ranges = try FieldRanges.locate(sorted, in: document)
        } catch {
            throw .damagedDocument
        }
    }

    /// What it costs to find all values in a document of so many bytes.
    func searchCost(_ byteCount: Int) -> Int { sorted.isEmpty ? fields.count * byteCount : byteCount }

    /// The value of a field in the document; nil if it is absent.
    @_lifetime(copy document)
    func value(_ index: Int, in document: RawSpan) -> RawSpan? {
        if sorted.isEmpty { return DocumentBytes.value(at: fields[index], in: document) }
        guard let range = ranges[places[index]] else { return nil }
        return document.extracting(range)
    }
}

/// Where groups are, by the bytes of their values in documents.
private struct GroupPlaces: ~Copyable {
    private var placesOfBytes = ByteTable()
    /// By the keys of the values, which are the same for equal values.
    private var placesOfKeys = ByteTable()
    /// The bytes of the last document's values.
    private var bytes = ByteBuffer(capacity: 256)
    private var hash: UInt64 = 0

    /// Bytes of the values that were looked for last.
    var foundByteCount: Int { bytes.count }

    /// The place of the group of a document; nil for values with bytes that were not noted.
    ///
    /// - Parameter values: the first ones are those of the groups.
    mutating func find(_ groupCount: Int, of values: FieldValues, in document: RawSpan) -> Int? {
        bytes.reset()
        for index in 0..<groupCount {
            guard let value = values.value(index, in: document) else {
                bytes.append(byte: 0)
                continue
            }
            bytes.append(byte: 1)
            bytes.append(bigEndian: UInt32(value.byteCount))
            bytes.append(value)
        }
        hash = ByteTable.hash(bytes.bytes)
        return placesOfBytes.value(of: bytes.bytes, hash: hash)
    }

    /// Notes that the values that were looked for last have a key.
    ///
    /// - Returns: the place of the key; nil if it is new.
    mutating func note(equal key: [UInt8]) -> Int? {
        guard let place = placesOfKeys.value(of: key.byteSpan) else { return nil }
        Self.set(bytes, hash, place, in: &placesOfBytes)
        return place
    }

    /// Notes the place of a new key, that of the values that were looked for last.
    mutating func noteNew(_ key: [UInt8], at place: Int) {
        placesOfKeys.set(key.byteSpan, to: place)
        Self.set(bytes, hash, place, in: &placesOfBytes)
    }

    private static func set(
        _ key: borrowing ByteBuffer, _ hash: UInt64, _ place: Int, in table: inout ByteTable
    ) {
        table.set(key.bytes, hash: hash, to: place)
    }
}
