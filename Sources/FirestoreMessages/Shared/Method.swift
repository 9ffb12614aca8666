package import Basics

/// A remote procedure of this server, with its number in the native protocol and the paths by which gRPC calls it.
///
/// The numbers never change. Zero is not a method; those of the Firestore service are below 32.
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
    case executePipeline = 17

    case healthCheck = 128
    case healthWatch = 129
    case serverReflectionInfo = 130

    // Served over the socket in the data directory only, unless `isServedOverTCP` says otherwise.
    case adminGetServer = 192
    case adminBackup = 193
    case adminCheckpoint = 194
    case adminApplyIndexes = 195
    case adminListIndexes = 196
    case createIndex = 197
    case listIndexes = 198
    case getIndex = 199
    case deleteIndex = 200
    case getField = 201
    case updateField = 202
    case listFields = 203
    case getDatabase = 204
    case listDatabases = 205
    case listOperations = 206
    case getOperation = 207
    case waitOperation = 208
    case cancelOperation = 209
    case deleteOperation = 210
    case adminApplyRules = 211
    case adminRollbackRules = 212
    case adminListRules = 213
    case adminGetRules = 214
    case adminFork = 215
    case adminFollow = 216
    case adminStepDown = 217
    case adminForward = 218
    case adminNewestVersion = 219
    case createDatabase = 220
    case updateDatabase = 221
    case deleteDatabase = 222
    case adminMoveDatabase = 223
    case adminReceiveDatabase = 224
    case adminRevokeUser = 225

    /// Whether the TCP port serves it, to callers that may administer the server.
    package var isServedOverTCP: Bool {
        switch self {
        case .adminListIndexes, .adminApplyRules, .adminRollbackRules, .adminListRules, .adminGetRules, .adminFollow,
            .adminStepDown, .adminForward, .adminNewestVersion, .adminMoveDatabase, .adminReceiveDatabase,
            .adminRevokeUser:
            true
        // What is left of this service writes files where its caller says, or blocks threads.
        default: service != .administration
        }
    }

    /// How a follower has the server that takes the writes answer a call.
    package enum Forwarding: Sendable {
        /// The server where the call arrives answers it.
        case none
        /// It changes documents or settings. One that came twice with the same request identifier is applied once.
        case changesOnce
        /// It changes something, and the same call again changes nothing more.
        case changesAgain
        /// It changes something, and must not be made twice.
        case changes
        /// It reads, or ends a transaction.
        case reads
    }

    /// How the call is forwarded if it is forwarded. Reads are if they belong to a transaction that may write.
    package var forwarding: Forwarding {
        switch self {
        case .commit, .batchWrite, .createDocument, .updateDocument, .deleteDocument, .write, .executePipeline:
            .changesOnce
        case .beginTransaction, .rollback, .getDocument, .batchGetDocuments, .runQuery, .runAggregationQuery,
            .listDocuments, .listCollectionIds, .partitionQuery, .waitOperation:
            .reads
        case .adminApplyIndexes, .adminApplyRules, .updateField: .changesAgain
        case .createIndex, .deleteIndex, .cancelOperation, .deleteOperation, .adminRollbackRules: .changes
        default: .none
        }
    }

    /// The service that an RPC belongs to.
    package enum Service: Sendable {
        case firestore, health, reflection, administration, firestoreAdmin, operations

        /// Whether it is for administrators, and served over the socket in the data directory.
        package var isAdministrative: Bool {
            switch self {
            case .administration, .firestoreAdmin, .operations: true
            case .firestore, .health, .reflection: false
            }
        }
    }

    /// The RPCs of the Firestore service; their numbers are below 32.
    package static let ofFirestore = allCases.filter { $0.service == .firestore }

    package var service: Service {
        switch self {
        case .healthCheck, .healthWatch: .health
        case .serverReflectionInfo: .reflection
        case .adminGetServer, .adminBackup, .adminFork, .adminCheckpoint, .adminApplyIndexes, .adminListIndexes,
            .adminApplyRules, .adminRollbackRules, .adminListRules, .adminGetRules, .adminFollow, .adminStepDown,
            .adminForward, .adminNewestVersion, .adminMoveDatabase, .adminReceiveDatabase, .adminRevokeUser:
            .administration
        case .createIndex, .listIndexes, .getIndex, .deleteIndex, .getField, .updateField, .listFields, .getDatabase,
            .listDatabases, .createDatabase, .updateDatabase, .deleteDatabase:
            .firestoreAdmin
        case .listOperations, .getOperation, .waitOperation, .cancelOperation, .deleteOperation: .operations
        default: .firestore
        }
    }

    package var rpc: RPC { RPC(number: rawValue, shape: shape) }

    package var shape: RPCShape {
        switch self {
        case .batchGetDocuments, .runQuery, .runAggregationQuery, .executePipeline, .healthWatch, .adminFollow:
            .serverStreaming
        case .write, .listen, .serverReflectionInfo, .adminForward: .bidirectional
        default: .unary
        }
    }

    /// The paths by which gRPC knows the RPC.
    package var paths: [String] {
        switch service {
        case .firestore: ["/google.firestore.v1.Firestore/\(name)"]
        case .health: ["/grpc.health.v1.Health/\(name)"]
        case .administration: ["/hearth.admin.v1.Admin/\(name)"]
        case .firestoreAdmin: ["/google.firestore.admin.v1.FirestoreAdmin/\(name)"]
        case .operations: ["/google.longrunning.Operations/\(name)"]
        // Two versions with the same messages.
        case .reflection:
            ["/grpc.reflection.v1.ServerReflection/\(name)", "/grpc.reflection.v1alpha.ServerReflection/\(name)"]
        }
    }

    /// The RPC's name in its service.
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
        case .executePipeline: "ExecutePipeline"
        case .healthCheck: "Check"
        case .healthWatch: "Watch"
        case .serverReflectionInfo: "ServerReflectionInfo"
        case .adminGetServer: "GetServer"
        case .adminBackup: "Backup"
        case .adminFork: "Fork"
        case .adminFollow: "Follow"
        case .adminStepDown: "StepDown"
        case .adminForward: "Forward"
        case .adminNewestVersion: "NewestVersion"
        case .adminMoveDatabase: "MoveDatabase"
        case .adminReceiveDatabase: "ReceiveDatabase"
        case .adminRevokeUser: "RevokeUser"
        case .adminCheckpoint: "Checkpoint"
        case .adminApplyIndexes: "ApplyIndexes"
        case .adminListIndexes, .listIndexes: "ListIndexes"
        case .createIndex: "CreateIndex"
        case .getIndex: "GetIndex"
        case .deleteIndex: "DeleteIndex"
        case .getField: "GetField"
        case .updateField: "UpdateField"
        case .listFields: "ListFields"
        case .getDatabase: "GetDatabase"
        case .listDatabases: "ListDatabases"
        case .createDatabase: "CreateDatabase"
        case .updateDatabase: "UpdateDatabase"
        case .deleteDatabase: "DeleteDatabase"
        case .listOperations: "ListOperations"
        case .getOperation: "GetOperation"
        case .waitOperation: "WaitOperation"
        case .cancelOperation: "CancelOperation"
        case .deleteOperation: "DeleteOperation"
        case .adminApplyRules: "ApplyRules"
        case .adminRollbackRules: "RollbackRules"
        case .adminListRules: "ListRules"
        case .adminGetRules: "GetRules"
        }
    }
}
