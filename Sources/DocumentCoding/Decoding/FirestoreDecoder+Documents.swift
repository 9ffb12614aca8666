// From document bytes to a value: what `data(as:)` is made of.

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
        try decode(type, fields: bytes, document: document, owner: document?.owner)
    }

    /// Decodes a value from document bytes.
    ///
    /// - Parameter owner: the owner of the references that are read.
    package func decode<T: Decodable>(
        _ type: T.Type, fields: RawSpan, document: DocumentReference?, owner: AnyObject?
    ) throws -> T {
        try withSession(fields: fields, document: document, owner: owner) { session in
            try session.decode(type, WireValue(start: 0, end: fields.byteCount), parent: -1)
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
        fields: RawSpan, document: DocumentReference?, owner: AnyObject?, objects: [AnyObject]? = nil,
        _ body: (DecodingSession) throws -> R
    ) throws -> R {
        guard fields.byteCount < Int(Int32.max) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: [], debugDescription: "The document has 2 GiB or more."))
        }
        let session = unsafe DecodingSession.take(from: CoderTables.ofThisThread.decoding)
        defer { session.recycle() }
        session.begin(self, document: document, owner: owner, objects: objects)
        return try unsafe fields.withUnsafeBytes { buffer in
            // The session forgets the bytes before this closure's caller returns: `recycle` sets their count to 0.
            if let base = buffer.baseAddress { unsafe session.state.pointee.base = unsafe base }
            unsafe session.state.pointee.byteCount = buffer.count
            return try body(session)
        }
    }
}

extension DecodingSession {
    /// Readies an idle session for a decoder's strategies.
    fileprivate func begin(
        _ decoder: FirestoreDecoder, document: DocumentReference?, owner: AnyObject?, objects: [AnyObject]?
    ) {
        unsafe state.pointee.decoder = decoder
        unsafe state.pointee.document = document
        unsafe state.pointee.owner = owner
        if let objects {
            unsafe state.pointee.isTree = true
            unsafe state.pointee.objects = objects
        }
        if case .useDefaultKeys = decoder.keyDecodingStrategy {
            unsafe state.pointee.usesDefaultKeys = true
        } else {
            unsafe state.pointee.usesDefaultKeys = false
        }
        if case .timestamp = decoder.dateDecodingStrategy {
            unsafe state.pointee.readsTimestamps = true
        } else {
            unsafe state.pointee.readsTimestamps = false
        }
    }
}
