// The flags of `hearth serve` about the bases of a cluster.

import FileSystem

/// When bases are made, and where they lie.
enum ClusterFlags {
    static let base = Flag<ByteCount>(
        "cluster-base", "SIZE", default: .mebibytes(64),
        help: """
            A new base of the store is made when the log after the last one is larger than it, and than this. New \
            servers start from a base, and the log before it is dropped.
            """)
    static let directory = Flag<String>(
        "cluster-bases", "DIR", required: false,
        help: """
            The directory for bases, which all servers of the cluster have mounted; for stores of more than some \
            gigabytes. Without it bases lie in tables of the database.
            """)
    static let kept = Flag(
        "cluster-bases-keep", "TIME", default: TimeSpan.seconds(0),
        in: TimeSpan.seconds(0)...TimeSpan.seconds(366 * 86_400),
        help: """
            How long a base is kept after a newer one has replaced it, beside the last two. A database that is \
            restored to an earlier time needs the bases of that time, which a backup of it does not have if they lie \
            in a directory.
            """)
    static let all: [any FlagDeclaration] = [base, directory, kept]

    static func baseSettings(_ arguments: ParsedArguments) -> BaseSettings {
        BaseSettings(
            bytesMin: arguments[base].bytes, directory: arguments.value(of: directory),
            keptMilliseconds: UInt64(arguments[kept].milliseconds))
    }

    /// Refuses a directory for bases that is one of others.
    ///
    /// - Parameters:
    ///   - data: the data directory.
    ///   - archive: that of `--archive`; nil without one.
    static func check(_ arguments: ParsedArguments, data: String, archive: String?) throws {
        guard let place = arguments.value(of: directory) else { return }
        guard arguments.has(ServeSettings.cluster) else {
            throw UsageError(message: "--cluster-bases needs --cluster, whose bases lie there")
        }
        for other in [data, archive] {
            if let other { try Directory.checkApart(place, other, for: "--cluster-bases") }
        }
    }
}
