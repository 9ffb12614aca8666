internal import Calls
internal import FirestoreMessages

extension RPCTable {
    /// What a server serves over TCP.
    static let overTCP = RPCTable(Method.allCases.filter(\.isServedOverTCP))

    /// What it serves over the socket in its data directory: all of that, and its administration.
    static let local = RPCTable(Method.allCases)

    /// What it serves over the port for observation.
    static let observation = RPCTable([.healthCheck, .healthWatch])

    private convenience init(_ methods: [Method]) {
        self.init(
            methods.map { Entry($0.rpc, name: $0.name, paths: $0.paths) },
            unimplementedText: { UnimplementedMethod(path: $0)?.text })
    }
}
