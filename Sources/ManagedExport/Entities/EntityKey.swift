// Keys of entities: project, database, and collections with ids.

internal import Basics
internal import DocumentModel

/// The prefixes of project ids in keys: `dev~` of the emulator, `s~` of the cloud.
enum AppID {
    /// What keys that this program writes have.
    static let prefix = "dev~"

    /// The project of an app id.
    @_lifetime(copy app)
    static func project(_ app: RawSpan) -> RawSpan {
        guard let tilde = app.firstOffset(of: UInt8(ascii: "~")) else { return app }
        return app.extracting((tilde + 1)..<app.byteCount)
    }
}

extension ByteBuffer {
    /// Appends the app and, unless it is the default, the database of a name.
    mutating func appendApp(project: RawSpan) {
        appendTag(field: ReferenceField.app, .lengthDelimited)
        appendVarint(UInt64(AppID.prefix.utf8.count + project.byteCount))
        append(utf8: AppID.prefix)
        append(project)
    }

    mutating func appendDatabaseID(_ database: RawSpan) {
        if !database.equalsBytes(Array("(default)".utf8).byteSpan) {
            appendField(ReferenceField.databaseID, bytes: database)
        }
    }

    /// Appends the elements of a path below `documents`, each a group.
    ///
    /// - Parameter elementsMax: elements to write, the first ones.
    mutating func appendPathElements(
        _ path: RawSpan, element: Int, kind: Int, id: Int, name: Int, elementsMax: Int = .max
    ) {
        var segments = PathSegments(path)
        var written = 0
        while written < elementsMax, let collection = segments.next(), let document = segments.next() {
            appendTag(field: element, .startGroup)
            appendField(kind, bytes: collection)
            // Zero is the number of a key without one.
            if let number = ResourceID.numericID(document), number != 0 {
                appendField(id, int64: number)
            } else {
                appendField(name, bytes: document)
            }
            appendTag(field: element, .endGroup)
            written += 1
        }
    }
}

/// The key of an entity as it was read.
package struct EntityKey: Equatable, Sendable {
    /// The project without its prefix.
    package var project = ""
    /// The database's id.
    package var database = "(default)"
    /// Collections and ids with slashes between them.
    package var path: [UInt8] = []

    /// `projects/P/databases/D` as the key has it.
    package var databaseName: String { "projects/\(project)/databases/\(database)" }
}

/// Collects the parts of a key or a reference value, which differ in field numbers alone.
struct KeyReader {
    /// Where the project and the database are in the bytes that were read.
    private(set) var project: Range<Int> = 0..<0
    private(set) var database: Range<Int>?
    /// Collections and ids with slashes between them.
    private(set) var path: [UInt8] = []

    /// Reads a `Reference` message: the key of an entity.
    static func read(key bytes: RawSpan) throws -> KeyReader {
        var key = KeyReader()
        var reader = WireReader(bytes)
        while let tag = try reader.nextTag() {
            if tag == WireTag(field: ReferenceField.path, .lengthDelimited) {
                var elements = try reader.message(tag)
                while let element = try elements.nextTag() {
                    guard element == WireTag(field: PathElementField.element, .startGroup) else {
                        try elements.skipField(element)
                        continue
                    }
                    try key.addElement(
                        try elements.group(element), kind: PathElementField.kind, id: PathElementField.id,
                        name: PathElementField.name)
                }
            } else {
                try key.add(tag, of: &reader)
            }
        }
        return key
    }

    /// Reads the contents of a `ReferenceValue` group.
    static func read(reference bytes: RawSpan) throws -> KeyReader {
        var key = KeyReader()
        var reader = WireReader(bytes)
        while let tag = try reader.nextTag() {
            if tag == WireTag(field: ReferenceElementField.element, .startGroup) {
                try key.addElement(
                    try reader.group(tag), kind: ReferenceElementField.kind, id: ReferenceElementField.id,
                    name: ReferenceElementField.name)
            } else {
                try key.add(tag, of: &reader)
            }
        }
        return key
    }

    private mutating func add(_ tag: WireTag, of reader: inout WireReader) throws {
        switch tag.fieldNumber {
        case ReferenceField.app:
            let app = try reader.span(tag)
            let name = AppID.project(app)
            project = (reader.position - name.byteCount)..<reader.position
        case ReferenceField.databaseID:
            let id = try reader.span(tag)
            if !id.isEmpty { database = (reader.position - id.byteCount)..<reader.position }
        case ReferenceField.namespace:
            let namespace = try reader.span(tag)
            if !namespace.isEmpty {
                throw EntityProblem("it is in the namespace \(String(repairingUTF8: namespace)), which Firestore lacks")
            }
        default: try reader.skipField(tag)
        }
    }

    private mutating func addElement(_ element: RawSpan, kind: Int, id: Int, name: Int) throws {
        var reader = WireReader(element)
        var kindName: RawSpan?
        var number: Int64 = 0
        var text: RawSpan?
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case kind: kindName = try reader.span(tag)
            case id: number = try reader.int64(tag)
            case name: text = try reader.span(tag)
            default: try reader.skipField(tag)
            }
        }
        guard let kindName else { throw EntityProblem("its key has an element without a collection") }
        try append(segment: kindName)
        if let text {
            try append(segment: text)
        } else if number != 0 {
            try append(segment: Array("__id\(number)__".utf8).byteSpan)
        } else {
            throw EntityProblem("its key is incomplete: it has neither an id nor a name")
        }
    }

    private mutating func append(segment: RawSpan) throws {
        if segment.firstOffset(of: UInt8(ascii: "/")) != nil {
            throw EntityProblem("the id \(String(repairingUTF8: segment.extracting(first: 200))) contains a slash")
        }
        if !path.isEmpty { path.append(UInt8(ascii: "/")) }
        path.append(contentsOf: segment)
    }
}
