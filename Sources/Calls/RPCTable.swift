package import Basics

/// The remote procedures that a listener serves, found by number (native frames) and by path (gRPC). Immutable.
package final class RPCTable: Sendable {
    /// One procedure and its names.
    package struct Entry: Sendable {
        let rpc: RPC
        let name: String
        let paths: [String]

        /// - Parameters:
        ///   - name: as errors say it, for example `Commit`.
        ///   - paths: `/package.Service/Method`, each of which calls it.
        package init(_ rpc: RPC, name: String, paths: [String]) {
            self.rpc = rpc
            self.name = name
            self.paths = paths
        }
    }

    /// By number; nil where there is none. Sparse: numbers are below a few hundred.
    private let byNumber: [RPC?]
    private let names: [UInt16: String]
    /// All paths, back to back.
    private let pathBytes: [UInt8]
    private let paths: [(range: Range<Int>, rpc: RPC)]
    /// The text for clients that call a procedure which is known and not served, by its path.
    private let unimplementedText: @Sendable (String) -> String?

    /// - Parameters:
    ///   - entries: with distinct numbers, none of them zero.
    ///   - unimplementedText: the text of UNIMPLEMENTED for a path that is none of the entries'; nil for a general
    ///     text. The path may have been cut.
    package init(_ entries: [Entry], unimplementedText: @escaping @Sendable (String) -> String? = { _ in nil }) {
        var byNumber: [RPC?] = Array(repeating: nil, count: 1 + Int(entries.map(\.rpc.number).max() ?? 0))
        var names: [UInt16: String] = [:]
        var pathBytes: [UInt8] = []
        var paths: [(range: Range<Int>, rpc: RPC)] = []
        for entry in entries {
            precondition(
                entry.rpc.number != 0 && names[entry.rpc.number] == nil, "RPC numbers are distinct and not zero")
            byNumber[Int(entry.rpc.number)] = entry.rpc
            names[entry.rpc.number] = entry.name
            for path in entry.paths {
                let start = pathBytes.count
                pathBytes.append(contentsOf: path.utf8)
                paths.append((start..<pathBytes.count, entry.rpc))
            }
        }
        self.byNumber = byNumber
        self.names = names
        self.pathBytes = pathBytes
        self.paths = paths
        self.unimplementedText = unimplementedText
    }

    /// The procedure of this number, if it is served.
    package func rpc(number: UInt16) -> RPC? {
        let index = Int(number)
        return index < byNumber.count ? byNumber[index] : nil
    }

    /// The procedure with this path, if it is served.
    package func rpc(at path: RawSpan) -> RPC? {
        let bytes = pathBytes
        let all = bytes.byteSpan
        for (range, rpc) in paths where range.count == path.byteCount {
            if all.extracting(range).equalsBytes(path) { return rpc }
        }
        return nil
    }

    /// The procedure's name in its service.
    package func name(of rpc: RPC) -> String { names[rpc.number] ?? "RPC \(rpc.number)" }

    /// Why a path that is not served is refused.
    package func refusal(ofPath path: String) -> Refusal {
        unimplementedText(path).map(Refusal.notImplemented) ?? .unknownPath(path)
    }
}
