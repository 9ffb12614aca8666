// The calls that the protocol can carry: one number for each RPC of google.firestore.v1.Firestore.

/// How many messages each side of a call sends.
package enum MethodShape: UInt8, Sendable {
    /// One message each way.
    case unary
    /// One message from the client, any number from the server.
    case serverStreaming
    /// Any number each way.
    case bidirectional
}

/// An RPC of the Firestore service. The numbers are part of the protocol and never change; zero is not a method.
package enum Method: UInt16, Sendable, CaseIterable {
    case getDocument = 1
    case listDocuments = 2
    case createDocument = 3
    case updateDocument = 4
    case deleteDocument = 5
    case batchGetDocuments = 6
    case beginTransaction = 7
    case commit = 8
    case rollback = 9
    case runQuery = 10
    case runAggregationQuery = 11
    case partitionQuery = 12
    case write = 13
    case listen = 14
    case listCollectionIds = 15
    case batchWrite = 16

    package var shape: MethodShape {
        switch self {
        case .batchGetDocuments, .runQuery, .runAggregationQuery: .serverStreaming
        case .write, .listen: .bidirectional
        default: .unary
        }
    }

    /// The paths by which gRPC knows the RPC.
    package var paths: [String] { ["/google.firestore.v1.Firestore/\(name)"] }

    /// The RPC's name, as in `/google.firestore.v1.Firestore/<name>`.
    package var name: String {
        switch self {
        case .getDocument: "GetDocument"
        case .listDocuments: "ListDocuments"
        case .createDocument: "CreateDocument"
        case .updateDocument: "UpdateDocument"
        case .deleteDocument: "DeleteDocument"
        case .batchGetDocuments: "BatchGetDocuments"
        case .beginTransaction: "BeginTransaction"
        case .commit: "Commit"
        case .rollback: "Rollback"
        case .runQuery: "RunQuery"
        case .runAggregationQuery: "RunAggregationQuery"
        case .partitionQuery: "PartitionQuery"
        case .write: "Write"
        case .listen: "Listen"
        case .listCollectionIds: "ListCollectionIds"
        case .batchWrite: "BatchWrite"
        }
    }
}
