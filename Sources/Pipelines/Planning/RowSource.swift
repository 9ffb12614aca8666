// The first stage of a pipeline: what it reads.

internal import Basics
internal import DocumentModel
internal import Expressions
internal import QueryEngine

/// The row around a pipeline.
enum OuterRow {
    /// The pipeline is not in an expression.
    case none
    /// The pipeline is checked and does not run.
    case unknown
    /// The path of the row's document, if it has one.
    case row([UInt8]?)
}

/// What a pipeline reads.
enum RowSource: Sendable {
    /// Collections below a parent: the path of a document below `documents`, or empty. They may have to be read without
    /// indexes.
    case collections(CollectionSelector, parent: String, indexes: IndexChoice = .any)
    /// Documents by their paths below `documents`, in the order of names.
    case documents([[UInt8]])
    /// Rows in the request.
    case literals([[NamedValue]])

    /// Reads the first stage.
    ///
    /// - Throws: `INVALID_ARGUMENT`, or `UNIMPLEMENTED` for a source that is not served.
    ///
    /// - Parameter outer: the row around the pipeline, for the stage `subcollection`.
    init(_ stage: PipelineStage, in database: DatabaseName, within outer: OuterRow) throws(RequestError) {
        switch stage.name {
        case "collection", "collection_group": try stage.refuseOptions(besides: [RowSource.forcedIndex])
        case SearchStage.name: break
        default: try stage.refuseOptions()
        }
        switch stage.name {
        case "collection":
            let path = try RowSource.path(try stage.only(), of: stage.name, in: database)
            guard path.count % 2 == 1, let id = path.last else {
                throw .invalidArgument("The stage collection takes the path of a collection.")
            }
            try ResourceID.check(id, isCollection: true)
            self = .collections(
                CollectionSelector(collectionID: id), parent: path.dropLast().joined(separator: "/"),
                indexes: try RowSource.indexes(stage))
        case "collection_group":
            try stage.expectArguments(2...2)
            guard let id = stage.arguments[1].text else {
                throw .invalidArgument("The stage collection_group takes a parent and the id of collections.")
            }
            try ResourceID.check(id, isCollection: true)
            let parent = try RowSource.path(stage.arguments[0], of: stage.name, in: database)
            guard parent.count % 2 == 0 else {
                throw .invalidArgument("The parent of the stage collection_group is not a document.")
            }
            self = .collections(
                CollectionSelector(collectionID: id, allDescendants: true), parent: parent.joined(separator: "/"),
                indexes: try RowSource.indexes(stage))
        case "database":
            try stage.expectArguments(0...0)
            self = .collections(CollectionSelector(collectionID: "", allDescendants: true), parent: "")
        case "documents": self = .documents(try RowSource.documents(stage, in: database))
        case "literals":
            try stage.expectArguments(1...PipelineLimits.rowsOfSource)
            self = .literals(
                try stage.arguments.map { (argument) throws(RequestError) in
                    guard let entries = argument.entries else {
                        throw .invalidArgument("The stage literals takes maps.")
                    }
                    return entries
                })
        case "subcollection": self = try .subcollection(stage, in: database, within: outer)
        case _ where RowSource.followers.contains(stage.name):
            throw .invalidArgument("A pipeline cannot begin with the stage \(stage.name).")
        default: throw RequestError(.unimplemented, "The pipeline stage \(stage.name) is not implemented.")
        }
    }

    private static let forcedIndex = "force_index"

    /// The indexes that may be used: `"primary"` is none of them.
    private static func indexes(_ stage: PipelineStage) throws(RequestError) -> IndexChoice {
        guard let option = stage.options.first(where: { $0.name == forcedIndex }) else { return .any }
        guard let name = option.value.text else {
            throw .invalidArgument(
                "Invalid index: the option \(forcedIndex) of the stage \(stage.name) takes the id of an index, or "
                    + "\"primary\", which reads without indexes.")
        }
        return name == "primary" ? .names : .only(name)
    }

    /// A collection below the document of the row around the pipeline.
    private static func subcollection(
        _ stage: PipelineStage, in database: DatabaseName, within outer: OuterRow
    ) throws(RequestError) -> RowSource {
        let parent: String
        switch outer {
        case .none:
            throw .invalidArgument(
                "The stage subcollection may be used at the start of a nested pipeline of an expression only.")
        case .unknown: parent = "any/document"
        case .row(nil): throw .invalidArgument("The row around the stage subcollection is not a document.")
        case .row(let document?): parent = String(decoding: document, as: UTF8.self)
        }
        guard let text = try stage.only().text else {
            throw .invalidArgument("The stage subcollection takes the path of a collection.")
        }
        let path = text.slashSeparated
        guard path.count % 2 == 1, let id = path.last else {
            throw .invalidArgument("The stage subcollection takes the path of a collection.")
        }
        try ResourceID.check(id, isCollection: true)
        let below = path.dropLast().reduce(parent) { "\($0)/\($1)" }
        try "\(database.documentsRoot)/\(below)".withUTF8Span { (bytes) throws(RequestError) in
            _ = try ResourceNameView(resource: bytes, rules: .request)
        }
        return .collections(CollectionSelector(collectionID: id), parent: below)
    }

    /// Stages that need rows.
    private static let followers: Set<String> = [
        "where", "sort", "limit", "offset", "select", "add_fields", "remove_fields", "replace_with", "distinct",
        "aggregate", "unnest", "sample", "union", "find_nearest", "let", "update", "delete", SearchStage.name,
    ]

    private static func documents(
        _ stage: PipelineStage, in database: DatabaseName
    ) throws(RequestError) -> [[UInt8]] {
        try stage.expectArguments(1...PipelineLimits.rowsOfSource)
        var paths: Set<[UInt8]> = []
        for argument in stage.arguments {
            let path = try path(argument, of: stage.name, in: database)
            guard !path.isEmpty, path.count % 2 == 0 else {
                throw .invalidArgument("The stage documents takes the paths of documents.")
            }
            paths.insert(Array(path.joined(separator: "/").utf8))
        }
        return paths.sorted { ResourcePath.compare($0.byteSpan, $1.byteSpan) < 0 }
    }

    /// The segments of a reference: `/a/b`, `a/b` or a full name in the database.
    private static func path(
        _ value: PipelineValue, of stage: String, in database: DatabaseName
    ) throws(RequestError) -> [String] {
        guard case .reference(let reference)? = value.literal else {
            throw .invalidArgument("The stage \(stage) takes references.")
        }
        var text = reference.utf8[...]
        let root = "\(database.documentsRoot)/"
        if text.starts(with: "projects/".utf8) {
            guard text.starts(with: root.utf8) else {
                throw .invalidArgument("The reference \"\(reference)\" is not in the database of the request.")
            }
            text = text.dropFirst(root.utf8.count)
        } else if text.first == RelativePath.slash {
            text = text.dropFirst()
        }
        if text.isEmpty { return [] }
        // Also checks each id and the number of segments.
        let name = root + String(Substring(text))
        try name.withUTF8Span { (bytes) throws(RequestError) in
            _ = try ResourceNameView(resource: bytes, rules: .request)
        }
        return text.split(separator: RelativePath.slash).map { String(Substring($0)) }
    }
}

extension PipelineStage {
    /// Makes sure of the number of arguments.
    func expectArguments(_ counts: ClosedRange<Int>) throws(RequestError) {
        if counts.contains(arguments.count) { return }
        throw .invalidArgument("The stage \(name) has a wrong number of arguments: \(arguments.count).")
    }

    /// The one argument.
    func only() throws(RequestError) -> PipelineValue {
        try expectArguments(1...1)
        return arguments[0]
    }

    /// Refuses options that would be without effect.
    func refuseOptions(besides known: Set<String> = []) throws(RequestError) {
        for option in options where !known.contains(option.name) {
            throw RequestError(.unimplemented, "The option \(option.name) of the stage \(name) is not implemented.")
        }
    }

    /// The fields that an argument names, sorted by name.
    func fields(_ index: Int) throws(RequestError) -> [NamedValue] {
        guard index < arguments.count, let entries = arguments[index].entries else {
            throw .invalidArgument("The stage \(name) takes a map of fields.")
        }
        if entries.count > PipelineLimits.fieldsOfStage {
            throw .invalidArgument("The stage \(name) has more than \(PipelineLimits.fieldsOfStage) fields.")
        }
        for entry in entries where entry.name.isEmpty {
            throw .invalidArgument("The stage \(name) has a field without a name.")
        }
        return entries.sorted { $0.name.compareUTF8($1.name) < 0 }
    }

    /// A number that is not negative.
    func count(_ index: Int) throws(RequestError) -> Int64 {
        guard index < arguments.count, case .integer(let count)? = arguments[index].literal, count >= 0 else {
            throw .invalidArgument("The stage \(name) takes a number that is not negative.")
        }
        return count
    }
}
