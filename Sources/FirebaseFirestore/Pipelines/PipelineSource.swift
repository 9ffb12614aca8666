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
        _ name: String, _ arguments: [PipelineNode] = [], reading places: [PendingWrites.Place] = []
    ) -> Pipeline {
        Pipeline(firestore: firestore, stages: [NodeCall(name: name, arguments: arguments)], places: places)
    }

    /// The documents of a collection.
    public func collection(_ path: String) -> Pipeline { collection(firestore.collection(path)) }

    /// The documents of a collection.
    public func collection(_ collection: CollectionReference) -> Pipeline {
        pipeline("collection", [.reference(collection.path)], reading: [.collection(UTF8Text(collection.collectionID))])
    }

    /// The documents of all collections with an id.
    public func collectionGroup(_ collectionID: String) -> Pipeline {
        pipeline(
            "collection_group", [.encoded(QueryValues.reference("").bytes), .value(collectionID)],
            reading: [.collection(UTF8Text(collectionID))])
    }

    /// All documents.
    public func database() -> Pipeline { pipeline("database") }

    /// Those of the documents that exist.
    public func documents(_ documents: [DocumentReference]) -> Pipeline {
        pipeline(
            "documents", documents.map { .reference($0.path) }, reading: documents.map { .document(UTF8Text($0.name)) })
    }

    /// Those of the documents that exist.
    public func documents(_ paths: [String]) -> Pipeline { documents(paths.map { firestore.document($0) }) }

    /// The documents of a collection below the document of the pipeline around: for subqueries.
    public func subcollection(_ path: String) -> Pipeline { pipeline("subcollection", [.value(path)]) }
}
