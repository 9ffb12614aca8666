// The messages of `hearth.admin.v1.Admin` about databases that move to another store.

package import Basics
internal import DocumentModel

/// Begins a move, gives one up, or asks how far one is.
package struct MoveDatabaseRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.Admin.MoveDatabaseRequest

    package var database: String
    /// The store to which the database shall move; empty only asks.
    package var store: String

    package init(database: String, store: String = "") {
        self.database = database
        self.store = store
    }

    package init(wire: RawSpan) throws {
        self.init(database: "")
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.database: database = try reader.string(tag)
            case Field.store: store = try reader.string(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        if !database.isEmpty { writer.appendField(Field.database, string: database) }
        if !store.isEmpty { writer.appendField(Field.store, string: store) }
    }
}

/// Where a database is, and where it moves.
package struct MovedDatabase: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.Admin.MovedDatabase

    /// The store that has the database.
    package var store: String
    /// The store to which it moves; empty if it does not.
    package var movingTo = ""
    /// Counts the moves of the database, and those that were given up.
    package var generation: UInt64 = 0
    /// The move cannot be given up any more.
    package var isReleasing = false
    /// Documents that were copied.
    package var documents: UInt64 = 0
    /// What holds the move up, or why it was given up; empty for nothing.
    package var note = ""

    package init(store: String) { self.store = store }

    package init(wire: RawSpan) throws {
        self.init(store: "")
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.store: store = try reader.string(tag)
            case Field.movingTo: movingTo = try reader.string(tag)
            case Field.generation: generation = try reader.uint64(tag)
            case Field.releasing: isReleasing = try reader.uint64(tag) != 0
            case Field.documents: documents = try reader.uint64(tag)
            case Field.note: note = try reader.string(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        if !store.isEmpty { writer.appendField(Field.store, string: store) }
        if !movingTo.isEmpty { writer.appendField(Field.movingTo, string: movingTo) }
        writer.appendField(Field.generation, varint: generation)
        writer.appendField(Field.releasing, varint: isReleasing ? 1 : 0)
        writer.appendField(Field.documents, varint: documents)
        if !note.isEmpty { writer.appendField(Field.note, string: note) }
    }
}

/// Asks a store how far it has received a database, or to apply a chunk of one.
package struct ReceiveDatabaseRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.Admin.ReceiveDatabaseRequest

    /// The store that receives.
    package var store: String
    package var database: String
    /// Of the move.
    package var generation: UInt64
    /// What the store that has the database has written for it; empty asks only.
    package var chunk: [UInt8]
    package var identity: CalledStore

    package init(
        store: String, _ identity: CalledStore = CalledStore(), database: String, generation: UInt64,
        chunk: [UInt8] = []
    ) {
        self.store = store
        self.database = database
        self.generation = generation
        self.chunk = chunk
        self.identity = identity
    }

    package init(wire: RawSpan) throws {
        self.init(store: "", database: "", generation: 0)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.store: store = try reader.string(tag)
            case Field.database: database = try reader.string(tag)
            case Field.generation: generation = try reader.uint64(tag)
            case Field.chunk: chunk = [UInt8](copying: try reader.span(tag))
            case Field.storeHigh: identity.high = try reader.uint64(tag)
            case Field.storeLow: identity.low = try reader.uint64(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        if !store.isEmpty { writer.appendField(Field.store, string: store) }
        if !database.isEmpty { writer.appendField(Field.database, string: database) }
        writer.appendField(Field.generation, varint: generation)
        writer.writeIfSet(Field.chunk, bytes: chunk)
        identity.encode(high: Field.storeHigh, low: Field.storeLow, into: &writer)
    }
}

/// What a store has of a database that moves.
package struct ReceivedDatabase: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.Admin.ReceivedDatabase

    package enum State: UInt64, Sendable {
        case owned = 1
        case receiving = 2
        /// Neither: it has heard of another move, or of none.
        case none = 3
    }

    package var state: State
    /// Of the move that has led to the state.
    package var generation: UInt64
    /// How far it is, in a form of the stores.
    package var progress: [UInt8]
    /// Steps until its indexes are built, about.
    package var indexWork: UInt64 = 0

    package init(_ state: State, generation: UInt64, progress: [UInt8] = []) {
        self.state = state
        self.generation = generation
        self.progress = progress
    }

    package init(wire: RawSpan) throws {
        self.init(.none, generation: 0)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.state: state = State(rawValue: try reader.uint64(tag)) ?? .none
            case Field.generation: generation = try reader.uint64(tag)
            case Field.progress: progress = [UInt8](copying: try reader.span(tag))
            case Field.indexWork: indexWork = try reader.uint64(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.appendField(Field.state, varint: state.rawValue)
        writer.appendField(Field.generation, varint: generation)
        writer.writeIfSet(Field.progress, bytes: progress)
        writer.appendField(Field.indexWork, varint: indexWork)
    }
}
