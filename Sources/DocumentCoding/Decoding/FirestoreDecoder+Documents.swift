// From document bytes to a value: what `data(as:)` is made of.

internal import CPrefetch

extension FirestoreDecoder {
    /// Decodes a value from document bytes: the `fields` entries of `google.firestore.v1.Document`, as
    /// `FirestoreEncoder.documentBytes(_:)` makes them.
    ///
    /// - Parameter document: the document the bytes are of: what `@DocumentID` properties receive, and whose database
    ///   references that are read belong to.
    /// - Throws: `DecodingError` with the coding path; malformed bytes are `dataCorrupted`.
    public func decode<T: Decodable>(
        _ type: T.Type, fromDocumentBytes bytes: RawSpan, of document: DocumentReference? = nil
    ) throws -> T {
        try withSession(fields: bytes, document: document) { session in
            try session.decode(type, ValueRange(start: 0, end: bytes.byteCount), parent: -1)
        }
    }

    /// What decoding a document that does not exist gives: nil for an optional type.
    ///
    /// - Throws: `DecodingError.valueNotFound` for other types.
    package func decodeMissing<T: Decodable>(_ type: T.Type) throws -> T {
        if let optional = type as? any ExpressibleByNilLiteral.Type, let none = optional.init(nilLiteral: ()) as? T {
            return none
        }
        throw DecodingError.valueNotFound(
            type,
            .init(codingPath: [], debugDescription: "Cannot get value of type \(type) -- the document does not exist."))
    }

    /// Readies a session of the thread and lends it.
    func withSession<R>(
        fields: RawSpan, document: DocumentReference?, objects: [AnyObject]? = nil,
        _ body: (DecodingSession) throws -> R
    ) throws -> R {
        guard fields.byteCount < Int(Int32.max) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: [], debugDescription: "The document has 2 GiB or more."))
        }
        let session = unsafe DecodingSession.take(from: CoderTables.ofThisThread.decoding)
        let strategies = strategies
        defer {
            session.recycle()
            withExtendedLifetime((strategies, document)) {}
        }
        session.begin(strategies, document: document, objects: objects)
        return try unsafe fields.withUnsafeBytes { buffer in
            // The session forgets the bytes before this closure's caller returns: `recycle` sets their count to 0.
            if let base = buffer.baseAddress {
                unsafe session.state.pointee.base = unsafe base
                unsafe fetch(base, buffer.count)
            }
            unsafe session.state.pointee.byteCount = buffer.count
            if SmallString.isKnown { unsafe session.state.pointee.smallStringEnd = buffer.count }
            return try body(session)
        }
    }

    /// Begins to fetch the first cache lines of a document: in a list of documents most are not in the cache yet, and
    /// reading follows lengths from one to the next.
    @inline(__always)
    private func fetch(_ start: UnsafeRawPointer, _ count: Int) {
        let (line, most) = (64, 1024)
        var offset = line
        while offset < min(count, most) {
            unsafe prefetch_for_reading(start + offset)
            offset &+= line
        }
    }
}

extension DecodingSession {
    /// Readies an idle session for a decoder's strategies.
    fileprivate func begin(
        _ strategies: DecodingStrategies, document: DocumentReference?, objects: [AnyObject]?
    ) {
        unsafe state.pointee.strategies = unsafe .passUnretained(strategies)
        if let document { unsafe state.pointee.document = unsafe .passUnretained(document) }
        if let objects {
            unsafe state.pointee.isTree = true
            unsafe state.pointee.objects = objects
        }
        unsafe state.pointee.usesDefaultKeys = strategies.usesDefaultKeys
        unsafe state.pointee.readsTimestamps = strategies.readsTimestamps
    }
}
