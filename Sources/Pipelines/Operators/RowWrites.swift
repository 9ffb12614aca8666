// The stages that write: update and delete.

internal import Basics
internal import DocumentModel
internal import Expressions

/// Makes a write of each row, and gives one row with their number when all are made. The caller commits them.
final class RowWrites: PipelineOperator {
    /// What becomes of a row's document.
    enum Change {
        case delete
        /// These fields get these values; one whose value is absent stays as it is.
        case update([NamedExpression])
        /// The row's fields become those of the document.
        case replace

        var stageName: String {
            switch self {
            case .delete: "delete"
            case .update, .replace: "update"
            }
        }
    }

    private let input: any PipelineOperator
    private let change: Change
    private let namePrefix: String
    /// The writes so far.
    private(set) var writes: WriteList
    private var written = ByteTable()
    private var writeBytes = 0
    private var hasEnded = false

    init(_ input: any PipelineOperator, _ change: Change, in database: DatabaseName) {
        self.input = input
        self.change = change
        namePrefix = database.documentsRoot + "/"
        writes = WriteList(database: database)
    }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        while !hasEnded {
            let pulled = try next(input, work)
            switch pulled {
            case .row(let row): try write(row, work)
            case .paused, .starved: return pulled
            case .finished:
                hasEnded = true
                return .row(PipelineRow(fields: .map(["documents_modified": .integer(Int64(writes.count))])))
            }
        }
        return .finished
    }

    private func write(_ row: PipelineRow, _ work: PipelineWork) throws(RequestError) {
        let path = try path(of: row)
        let name = namePrefix + String(decoding: path, as: UTF8.self)
        guard written.insert(path.byteSpan) else {
            if case .delete = change { return }
            throw .invalidArgument("The stage update takes each document once; \"\(name)\" comes again.")
        }
        switch change {
        case .delete:
            try name.withUTF8Span { (name) throws(RequestError) in
                try writes.delete(name, precondition: .exists(true))
            }
            try keep(name.utf8.count, work)
        case .update(let fields): try update(name, fields, row, work)
        case .replace: try replace(name, row, work)
        }
    }

    /// The path of the row's document below `documents`: where the row comes from, or what its field `__name__` names.
    private func path(of row: PipelineRow) throws(RequestError) -> [UInt8] {
        if let document = row.document { return document.path }
        guard case .reference(let name)? = row.fields.entries?[FieldPath.documentName.description],
            name.hasUTF8Prefix(namePrefix)
        else {
            throw .invalidArgument(
                "The stage \(change.stageName) takes documents; a row is none and names none in its field __name__.")
        }
        return Array(name.utf8.dropFirst(namePrefix.utf8.count))
    }

    private func replace(_ name: String, _ row: PipelineRow, _ work: PipelineWork) throws(RequestError) {
        let fields = row.fields.removing([["__name__"], ["__create_time__"], ["__update_time__"]])
        let bytes = try RowWrites.documentBytes(fields)
        try name.withUTF8Span { (name) throws(RequestError) in
            try writes.update(name, fields: bytes.byteSpan, precondition: .exists(true))
        }
        try keep(name.utf8.count + bytes.count, work)
    }

    private static func documentBytes(_ fields: Operand) throws(RequestError) -> [UInt8] {
        var writer = ByteBuffer(capacity: 256)
        do throws(ExpressionError) {
            try fields.appendEntries(field: FieldNumber.Document.fields, into: &writer)
        } catch {
            throw RequestError(error)
        }
        return writer.copyBytes()
    }

    private func update(
        _ name: String, _ fields: [NamedExpression], _ row: PipelineRow, _ work: PipelineWork
    ) throws(RequestError) {
        var values: [Operand.Placed] = []
        var paths: [FieldPath] = []
        for field in fields {
            let value = try work.evaluator.value(of: field.expression, on: row)
            if case .absent = value { continue }
            values.append((field.path[...], value))
            paths.append(try FieldPath(segments: field.path))
        }
        if paths.isEmpty { return }
        let bytes = try RowWrites.documentBytes(Operand.map([:]).setting(values))
        try name.withUTF8Span { (name) throws(RequestError) in
            try writes.update(
                name, fields: bytes.byteSpan, mask: DocumentMask(paths: paths), precondition: .exists(true))
        }
        try keep(name.utf8.count + bytes.count, work)
    }

    /// Counts the bytes of a write, which is also remembered by its name.
    private func keep(_ bytes: Int, _ work: PipelineWork) throws(RequestError) {
        try work.hold(2 * bytes + 256, for: change.stageName)
        writeBytes += bytes + 64
        if writeBytes > PipelineLimits.writeBytes {
            throw RequestError(
                .resourceExhausted,
                "The stage \(change.stageName) makes writes of more than \(PipelineLimits.writeBytes) bytes.")
        }
    }

    var line: String {
        switch change {
        case .delete: "Delete"
        case .update(let fields): "Update \(fields.names)"
        case .replace: "Update"
        }
    }

    var inputs: [any PipelineOperator] { [input] }
}
