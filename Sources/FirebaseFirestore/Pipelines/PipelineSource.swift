// The beginning of a pipeline.

import Basics
public import DocumentCoding

extension Firestore {
    /// Begins a pipeline.
    public func pipeline() -> PipelineSource {
        checkUsable()
        return PipelineSource(firestore: self)
    }
}

/// What a pipeline reads.
public struct PipelineSource: Sendable {
    let firestore: Firestore

    private func pipeline(
        _ name: String, _ arguments: [PipelineNode] = [], forceIndex: String? = nil, reading source: ReadScope
    ) -> Pipeline {
        let options = forceIndex.map { [NamedNode("force_index", .value($0))] } ?? []
        let stage = NodeCall(name: name, arguments: arguments, options: options, source: source)
        return Pipeline(firestore: firestore, stages: [stage])
    }

    /// The documents of a collection.
    ///
    /// - Parameter forceIndex: `"primary"` reads without indexes, the id of a declared index by this index alone. One
    ///   that does not serve the pipeline fails with `invalidArgument`. Without it the server chooses indexes.
    public func collection(_ path: String, forceIndex: String? = nil) -> Pipeline {
        collection(firestore.collection(path), forceIndex: forceIndex)
    }

    /// The documents of a collection.
    ///
    /// - Parameter forceIndex: `"primary"` reads without indexes, the id of a declared index by this index alone. One
    ///   that does not serve the pipeline fails with `invalidArgument`. Without it the server chooses indexes.
    public func collection(_ collection: CollectionReference, forceIndex: String? = nil) -> Pipeline {
        enforcing { () throws(RuleViolation) in
            try firestore.check("\(collection.firestore.databaseName)", of: "Invalid CollectionReference. It")
        }
        return pipeline(
            "collection", [.reference(collection.path)], forceIndex: forceIndex,
            reading: ReadScope(collection: collection.collectionID))
    }

    /// The documents of all collections with an id.
    ///
    /// - Parameter forceIndex: `"primary"` reads without indexes, the id of a declared index by this index alone. One
    ///   that does not serve the pipeline fails with `invalidArgument`. Without it the server chooses indexes.
    public func collectionGroup(_ collectionID: String, forceIndex: String? = nil) -> Pipeline {
        pipeline(
            "collection_group", [.encoded(QueryValues.reference("").bytes), .value(collectionID)],
            forceIndex: forceIndex, reading: ReadScope(collection: collectionID))
    }

    /// All documents.
    public func database() -> Pipeline { pipeline("database", reading: .everything) }

    /// Those of the documents that exist.
    public func documents(_ documents: [DocumentReference]) -> Pipeline {
        enforcing { () throws(RuleViolation) in
            for document in documents {
                try firestore.check(String(document.databaseName), of: "Invalid DocumentReference. It")
            }
        }
        return pipeline(
            "documents", documents.map { .reference($0.path) }, reading: ReadScope(documents: documents.map(\.path)))
    }

    /// Those of the documents that exist.
    public func documents(_ paths: [String]) -> Pipeline { documents(paths.map { firestore.document($0) }) }
}

/// The documents of a collection below the document of the pipeline around: for subqueries.
public final class Subcollection: Pipeline, @unchecked Sendable {
    /// A collection by its path below the document.
    public init(_ path: String) {
        let stage = NodeCall(name: "subcollection", arguments: [.value(path)], source: ReadScope(collection: path))
        super.init(firestore: nil, stages: [stage])
    }
}
