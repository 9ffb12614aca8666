// Documents as `[String: Any]`, the SDK's untyped form: what a write makes of it. Reading is in DocumentFields+Reading.

import Basics

/// Turns `[String: Any]` into the parts of writes, and document bytes into `[String: Any]`.
///
/// Accepted values: `NSNull` and nil, `String`, `Bool`, integers, floats, `NSNumber`, `Date`, `Timestamp`, `Data`,
/// `GeoPoint`, `DocumentReference`, `VectorValue`, arrays and string-keyed dictionaries of those, and `FieldValue`.
/// Anything else, arrays directly in arrays, sentinels where they have no meaning, and references of another database
/// throw `InvalidUserData`, which names the field.
package enum DocumentFields {
    /// The data of a write that replaces the document; keys are literal names.
    ///
    /// - Parameter database: the database that references must be of, `projects/P/databases/D`; nil = any.
    package static func set(_ data: [String: Any], database: Substring? = nil) throws(InvalidUserData)
        -> DocumentWriteData
    {
        try encode(database) { session throws(InvalidUserData) in
            try session.putDocument(data)
            if let path = session.sentinels.deletedPaths.first {
                throw InvalidUserData(
                    "FieldValue.delete() can only be used with updateData() and setData() with merge:true "
                        + "(found in field \(FieldPath.serverFormat(path)))")
            }
            return DocumentWriteData(fields: session.documentBytes, transforms: session.sentinels.transforms)
        }
    }

    /// The data of a write that merges: the mask names every leaf of the data and every deleted field.
    package static func merge(_ data: [String: Any], database: Substring? = nil) throws(InvalidUserData)
        -> DocumentWriteData
    {
        try encode(database) { session throws(InvalidUserData) in
            try session.putDocument(data)
            let (transforms, deletedPaths) = session.sentinels
            let fields = session.documentBytes
            let mask = unsafe leafMask(of: fields.span.bytes, transforms: transforms, deletedPaths: deletedPaths)
            return DocumentWriteData(fields: fields, mask: mask, transforms: transforms)
        }
    }

    /// The data of a write that touches the given fields only; the rest of the data is ignored.
    package static func merge(
        _ data: [String: Any], fields paths: [FieldPath], database: Substring? = nil
    ) throws(InvalidUserData) -> DocumentWriteData {
        try encode(database) { session throws(InvalidUserData) in
            try session.putDocument(data)
            let (transforms, deletedPaths) = session.sentinels
            return try unsafe mergeData(
                session.documentBytes.span.bytes, transforms: transforms, deletedPaths: deletedPaths, paths: paths)
        }
    }

    /// The data of an update: keys are dotted `String`s or `FieldPath`s, each of which the mask names.
    package static func update(
        _ data: [AnyHashable: Any], database: Substring? = nil
    ) throws(InvalidUserData) -> DocumentWriteData {
        var tree = UpdateTree()
        var paths: [FieldPath] = []
        for (key, value) in data {
            let path: FieldPath
            do throws(InvalidFieldPath) {
                path = try FieldPath.reading(key.base)
            } catch {
                throw InvalidUserData(error.description)
            }
            try tree.insert(value, at: path.segments[...], of: path)
            paths.append(path)
        }
        return try encode(database) { session throws(InvalidUserData) in
            try session.putDocument(tree)
            let (transforms, deletedPaths) = session.sentinels
            let topLevel = Set(paths.map(\.segments.exact))
            if let path = deletedPaths.first(where: { !topLevel.contains($0.exact) }) {
                throw InvalidUserData(
                    "FieldValue.delete() can only appear at the top level of your update data "
                        + "(found in field \(FieldPath.serverFormat(path)))")
            }
            let transformed = Set(transforms.map(\.path.exact))
            let mask = paths.filter { !transformed.contains($0.segments.exact) }.map(\.serverFormat).sorted()
            return DocumentWriteData(fields: session.documentBytes, mask: mask, transforms: transforms)
        }
    }

    /// A value for a filter or a cursor, as a Value message. Sentinels are refused.
    ///
    /// - Parameter allowsNestedArrays: whether arrays may stand directly in arrays, as in the lists of `in` and
    ///   `notIn`.
    package static func value(
        _ value: Any, database: Substring? = nil, allowsNestedArrays: Bool = false
    ) throws(InvalidUserData) -> [UInt8] {
        try encode(database) { session throws(InvalidUserData) in
            unsafe session.state.pointee.allowsNestedArrays = allowsNestedArrays
            try session.putOperand(value)
            return session.copiedBytes
        }
    }

    /// The elements of a union or removal, as an ArrayValue message.
    static func arrayBytes(
        _ elements: [Any], of sentinel: FieldValue, _ database: Substring?
    ) throws(InvalidUserData) -> [UInt8] {
        try encode(database) { session throws(InvalidUserData) in
            for element in elements {
                session.reserve(2)
                session.put(byte: ValueWireTag.arrayElement)
                session.put(byte: 0)
                let start = session.count
                if element is [Any] { throw InvalidUserData("Nested arrays are not supported.") }
                try session.putOperand(element)
                session.fillLength(at: start - 1)
            }
            return session.copiedBytes
        }
    }

    private static func encode<R>(
        _ database: Substring?, _ body: (EncodingSession) throws(InvalidUserData) -> R
    ) throws(InvalidUserData) -> R {
        let session = unsafe EncodingSession.take(from: CoderTables.ofThisThread.encoding)
        defer { session.recycle() }
        session.begin(nil, database: database, isTree: false)
        return try body(session)
    }
}

/// The keys of an update as a tree of names.
struct UpdateTree {
    enum Node {
        case value(Any)
        case branch(UpdateTree)
    }

    private(set) var nodes: [UTF8Text: Node] = [:]

    /// Puts a value at a path; a path that another one leads through, or ends at, is refused.
    fileprivate mutating func insert(
        _ value: Any, at names: ArraySlice<String>, of path: FieldPath
    ) throws(InvalidUserData) {
        let name = UTF8Text(names.first!)  // a FieldPath has at least one name
        if names.count == 1 {
            guard nodes[name] == nil else { throw Self.conflict(path) }
            nodes[name] = .value(value)
            return
        }
        var branch: UpdateTree
        switch nodes[name] {
        case nil: branch = UpdateTree()
        case .branch(let known): branch = known
        case .value: throw Self.conflict(path)
        }
        try branch.insert(value, at: names.dropFirst(), of: path)
        nodes[name] = .branch(branch)
    }

    private static func conflict(_ path: FieldPath) -> InvalidUserData {
        InvalidUserData("Field \(path.serverFormat) is set twice in the update, or inside another field of the update.")
    }
}
