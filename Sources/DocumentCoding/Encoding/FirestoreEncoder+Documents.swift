// From a value to document bytes: what `setData(from:)` and its relatives are made of.

extension FirestoreEncoder {
    /// Encodes a value and lends its document bytes: the `fields` entries of `google.firestore.v1.Document`,
    /// in canonical form. This is the fastest way; nothing is copied.
    ///
    /// - Parameter body: receives the bytes, valid until it returns.
    /// - Throws: `EncodingError` with the coding path for values no document can hold, among them sentinels
    ///   (`FieldValue`), which need a write to live in; whatever the value's `encode(to:)` throws.
    public func withDocumentBytes<T: Encodable, R>(_ value: T, _ body: (RawSpan) throws -> R) throws -> R {
        try withSession(encoding: value) { session, fields in
            try session.refuseSentinels()
            return try body(fields)
        }
    }

    /// Encodes a value into document bytes; see `withDocumentBytes(_:_:)`.
    public func documentBytes<T: Encodable>(_ value: T) throws -> [UInt8] {
        try withDocumentBytes(value) { fields in unsafe fields.withUnsafeBytes { unsafe [UInt8]($0) } }
    }

    /// Encodes a value for a write that replaces the document.
    ///
    /// - Parameter database: the database that references must be of, `projects/P/databases/D`; nil = any.
    /// - Throws: `EncodingError`, also for `FieldValue.delete()`, which has no meaning here.
    package func setData<T: Encodable>(from value: T, database: Substring? = nil) throws -> DocumentWriteData {
        try withSetData(from: value, database: database) { fields, transforms in
            DocumentWriteData(fields: [UInt8](copying: fields), transforms: transforms)
        }
    }

    /// As `setData`, and lends the fields instead of copying them.
    ///
    /// - Parameter body: receives the fields, valid until it returns, and the transforms.
    package func withSetData<T: Encodable, R>(
        from value: T, database: Substring? = nil, _ body: (RawSpan, [FieldTransformData]) throws -> R
    ) throws -> R {
        try withSession(encoding: value, database: database) { session, fields in
            try session.refuseDeletes()
            return try body(fields, session.sentinels.transforms)
        }
    }

    /// Encodes a value for a write that merges: the mask names every leaf of the value and every deleted field.
    package func mergeData<T: Encodable>(from value: T, database: Substring? = nil) throws -> DocumentWriteData {
        try withSession(encoding: value, database: database) { session, fields in
            session.writeData(fields, mask: session.leafMask(of: fields))
        }
    }

    /// Encodes a value for a write that touches the given fields only.
    ///
    /// - Throws: `EncodingError`; `InvalidUserData` for a path that the value says nothing about.
    package func mergeData<T: Encodable>(
        from value: T, fields paths: [FieldPath], database: Substring? = nil
    ) throws -> DocumentWriteData {
        try withSession(encoding: value, database: database) { session, fields in
            let sentinels = session.sentinels
            return try DocumentFields.mergeData(
                fields, transforms: sentinels.transforms, deletedPaths: sentinels.deletedPaths, paths: paths)
        }
    }

    /// Encodes a value in a session of the thread and lends its document bytes.
    func withSession<T: Encodable, R>(
        encoding value: T, database: Substring? = nil, isTree: Bool = false,
        _ body: (EncodingSession, RawSpan) throws -> R
    ) throws -> R {
        let session = unsafe EncodingSession.take(from: CoderTables.ofThisThread.encoding)
        let strategies = strategies
        defer {
            session.recycle()
            session.reclaimKeptContainers()
            withExtendedLifetime(strategies) {}
        }
        session.begin(strategies, database: database, isTree: isTree)
        let start = try session.putDocument(value)
        // The session's buffer does not change while it is lent.
        let bytes = unsafe UnsafeRawBufferPointer(
            start: session.state.pointee.base + start, count: session.count - start)
        unsafe session.forgetSentinels(replacedIn: bytes.bytes)
        return try unsafe body(session, bytes.bytes)
    }
}

extension EncodingSession {
    /// Readies an idle session for an encoder's strategies; nil for the default ones.
    func begin(_ strategies: EncodingStrategies?, database: Substring?, isTree: Bool) {
        if let strategies { unsafe state.pointee.strategies = unsafe .passUnretained(strategies) }
        unsafe state.pointee.isTree = isTree
        unsafe state.pointee.expectsLong = false
        unsafe state.pointee.allowsNestedArrays = false
        if let database { unsafe state.pointee.database = database }
        unsafe state.pointee.usesDefaultKeys = strategies?.usesDefaultKeys ?? true
        unsafe state.pointee.writesTimestamps = strategies?.writesTimestamps ?? true
    }

    /// Encodes the document itself.
    ///
    /// - Returns: where its entries begin; they reach to the end of the bytes.
    func putDocument<T: Encodable>(_ value: T) throws -> Int {
        let record = unsafe typeRecord(T.self)
        let isPresent =
            if unsafe record.pointee.kind == .other {
                try putFrame(entryTag: ValueWireTag.documentField) { encoder in
                    try value.encode(to: encoder)
                    if unsafe state.pointee.frames.pointee.kind == .undecided {
                        throw EncodingError.invalidValue(
                            value,
                            .init(codingPath: [], debugDescription: "Top-level \(T.self) did not encode any values."))
                    }
                }
            } else {
                try unsafe put(value, record)
            }
        guard isPresent, count >= 2, unsafe state.pointee.base.load(as: UInt8.self) == ValueWireTag.map,
            unsafe record.pointee.kind == .other || record.pointee.kind == .direct
        else {
            throw EncodingError.invalidValue(
                value, .init(codingPath: [], debugDescription: "Top-level \(T.self) is not allowed."))
        }
        let document = unsafe state.pointee.frames
        if unsafe document.pointee.isDocument && document.pointee.kind == .map {
            return unsafe document.pointee.bodyStart
        }
        // The value is a dictionary, or wrote itself as one: a nested map.
        var start = 1
        while unsafe state.pointee.base.load(fromByteOffset: start, as: UInt8.self) >= 0x80 { start += 1 }
        start += 1
        if start < count,
            unsafe state.pointee.base.load(fromByteOffset: start, as: UInt8.self) != ValueWireTag.documentField
        {
            retagEntries(from: start)
        }
        return start
    }

    /// Turns the entries of a nested map into those of a document: they differ in their tags.
    private func retagEntries(from start: Int) {
        var at = start
        while at < count {
            unsafe state.pointee.base.storeBytes(of: ValueWireTag.documentField, toByteOffset: at, as: UInt8.self)
            at += 1
            var length = 0
            var shift = 0
            while true {
                let byte = unsafe state.pointee.base.load(fromByteOffset: at, as: UInt8.self)
                at += 1
                length |= Int(byte & 0x7f) << shift
                if byte < 0x80 { break }
                shift += 7
            }
            at += length
        }
    }

    var sentinels: (transforms: [FieldTransformData], deletedPaths: [[String]]) {
        unsafe (state.pointee.transforms, state.pointee.deletedPaths)
    }

    fileprivate func refuseSentinels() throws {
        let (transforms, deletedPaths) = sentinels
        if let path = transforms.first?.path ?? deletedPaths.first {
            throw EncodingError.invalidValue(
                FieldPath.serverFormat(path),
                .init(
                    codingPath: path.map(PathKey.init(stringValue:)),
                    debugDescription: "FieldValue sentinels cannot be encoded into document bytes."))
        }
    }

    fileprivate func refuseDeletes() throws {
        guard let path = sentinels.deletedPaths.first else { return }
        throw EncodingError.invalidValue(
            FieldValue.delete(),
            .init(
                codingPath: path.map(PathKey.init(stringValue:)),
                debugDescription:
                    "FieldValue.delete() can only be used with updateData() and setData() with merge:true "
                    + "(found in field \(path.joined(separator: ".")))"))
    }

    fileprivate func writeData(_ fields: RawSpan, mask: [String]?) -> DocumentWriteData {
        DocumentWriteData(
            fields: [UInt8](copying: fields), mask: mask, transforms: sentinels.transforms)
    }

    fileprivate func leafMask(of fields: RawSpan) -> [String] {
        let (transforms, deletedPaths) = sentinels
        return DocumentFields.leafMask(of: fields, transforms: transforms, deletedPaths: deletedPaths)
    }
}
