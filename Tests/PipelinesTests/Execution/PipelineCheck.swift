// What must hold for the bytes of a pipeline, whatever they are. Called by tests and by the fuzzer.

import DocumentModel

#if canImport(Basics)
    import Basics
#endif
#if canImport(Expressions)
    import Expressions
#endif
#if canImport(QueryEngine)
    import QueryEngine
#endif
#if canImport(Pipelines)
    @testable import Pipelines
#endif

enum PipelineCheck {
    /// Rows that a pipeline gets in the place of what its first stage reads.
    private static let rows: [MapValue] = [
        [
            "a": 1, "b": 2.5, "s": "text", "t": true, "l": [1, "a", nil], "m": ["k": ["y": "z"]], "none": nil,
            "when": .timestamp(TimestampValue(seconds: 1_700_000_000, nanoseconds: 5)), "bytes": .bytes([0, 255]),
            "place": .geoPoint(GeoPointValue(latitude: 1, longitude: 2)),
            "ref": .reference("projects/p/databases/d/documents/c/x"),
        ],
        ["a": 7, "s": "", "l": [], "m": [:]],
        [:],
    ]

    /// Ways in which a pipeline may fail.
    private static let codes: Set<StatusCode> = [
        .invalidArgument, .unimplemented, .resourceExhausted, .failedPrecondition,
    ]

    /// Steps within which a pipeline over so few rows ends.
    private static let stepsMax = 200_000

    /// The broken property, or nil.
    ///
    /// Nothing traps, and nothing runs without bound. A pipeline that is refused says why with a code that a client
    /// may see. Results can be read as documents. The form has a bounded text.
    static func violation(_ bytes: [UInt8]) -> String? {
        do throws(RequestError) {
            let stages = try ParsedPipeline(structuredPipeline: bytes.byteSpan).stages
            let form = PipelineForm(stages)
            if form.text.count > 300 { return "the text of the form has \(form.text.count) characters" }
            if let violation = try violation(structuredPipeline: bytes) { return violation }
            return try violation(overRows: stages)
        } catch {
            return violation(error)
        }
    }

    private static func violation(_ error: RequestError) -> String? {
        if error.isPending { return "a read is pending" }
        if error.message.isEmpty { return "an error has no message" }
        return codes.contains(error.code) ? nil : "the status is \(error.code): \(error.message)"
    }

    /// The pipeline as it is, over a database without documents.
    private static func violation(structuredPipeline bytes: [UInt8]) throws(RequestError) -> String? {
        let database = try DatabaseName("projects/p/databases/d")
        let run = try PipelineExecution(structuredPipeline: bytes.byteSpan, in: database, options: options)
        return try violation(run)
    }

    /// The stages after the first one over some rows.
    private static func violation(overRows stages: [PipelineStage]) throws(RequestError) -> String? {
        let database = try DatabaseName("projects/p/databases/d")
        let literals = PipelineStage(
            name: "literals",
            arguments: rows.map { .literal(Operand(EncodedValue(.map($0)))) }, options: [])
        return try violation(
            PipelineExecution(
                [literals] + stages.dropFirst(), in: database, options: options, explanation: PipelineExplanation([])))
    }

    private static var options: PipelineOptions {
        var options = PipelineOptions()
        options.memoryBytes = 1 << 20
        options.rowsPerStep = 300
        return options
    }

    private static func violation(_ run: PipelineExecution) throws(RequestError) -> String? {
        var broken: String?
        for _ in 0..<stepsMax {
            let progress = try run.next { (result) throws(RequestError) in
                var fields = ByteBuffer()
                try result.appendFields(into: &fields)
                if (try? MapValue(documentBytes: fields.bytes)) == nil { broken = "a result cannot be read" }
                return .more
            }
            if broken != nil { return broken }
            switch progress {
            case .finished: return nil
            case .paused: continue
            case .starved: try run.fill(from: NoDocuments())
            }
        }
        return "the pipeline does not end"
    }
}

/// A database without documents.
private struct NoDocuments: QuerySource, ~Copyable {
    let database: UInt32 = 0
    let versionMicroseconds = UInt64.max
    private let nothing: [UInt8] = []

    @_lifetime(borrow self)
    borrowing func cursor(
        from lower: RawSpan, to upper: RawSpan, _ direction: SortDirection
    ) throws(RequestError) -> Cursor {
        let bytes = nothing.span.bytes
        return Cursor(bytes)
    }

    @_lifetime(borrow self)
    borrowing func value(forKey key: RawSpan) throws(RequestError) -> SourceValue? { nil }

    struct Cursor: RangeCursor, ~Copyable, ~Escapable {
        let key: RawSpan
        var value: RawSpan { @_lifetime(borrow self) borrowing get { key } }
        var versionMicroseconds: UInt64 { 0 }

        @_lifetime(copy key)
        init(_ key: RawSpan) { self.key = key }

        @_lifetime(self: copy self)
        mutating func next() throws(RequestError) -> Bool { false }

        @_lifetime(self: copy self)
        mutating func seek(to key: RawSpan) throws(RequestError) {}
    }
}
