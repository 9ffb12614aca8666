// The procedures that the tests' services have: numbers, shapes and paths as a real server might have them.

package import Basics
package import Calls

extension RPC {
    package static let getDocument = RPC(number: 1, shape: .unary)
    package static let deleteDocument = RPC(number: 5, shape: .unary)
    package static let commit = RPC(number: 8, shape: .unary)
    package static let rollback = RPC(number: 9, shape: .unary)
    package static let runQuery = RPC(number: 10, shape: .serverStreaming)
    package static let write = RPC(number: 13, shape: .bidirectional)
    package static let listen = RPC(number: 14, shape: .bidirectional)
    /// Known by two paths.
    package static let reflect = RPC(number: 130, shape: .bidirectional)
}

package enum TestProcedures {
    package static let entries: [(rpc: RPC, name: String, paths: [String])] = [
        (.getDocument, "GetDocument", ["/test.Store/GetDocument"]),
        (.deleteDocument, "DeleteDocument", ["/test.Store/DeleteDocument"]),
        (.commit, "Commit", ["/test.Store/Commit"]),
        (.rollback, "Rollback", ["/test.Store/Rollback"]),
        (.runQuery, "RunQuery", ["/test.Store/RunQuery"]),
        (.write, "Write", ["/test.Store/Write"]),
        (.listen, "Listen", ["/test.Store/Listen"]),
        (.reflect, "Reflect", ["/test.v1.Reflection/Reflect", "/test.v1alpha.Reflection/Reflect"]),
    ]

    package static let table = RPCTable(
        entries.map { RPCTable.Entry($0.rpc, name: $0.name, paths: $0.paths) },
        unimplementedText: { $0 == "/test.Store/Later" ? "Later is not implemented yet: use Now" : nil })
}

/// The path by which gRPC calls a procedure.
package func path(_ rpc: RPC) -> String { TestProcedures.entries.first { $0.rpc == rpc }!.paths[0] }
