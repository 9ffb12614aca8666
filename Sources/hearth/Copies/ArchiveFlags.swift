// The flags of `hearth serve` about its archive.

import Archive
import FirestoreService
import Storage

/// Where a server archives its commits.
enum ArchiveFlags {
    private static let defaults = ArchiveSettings(directory: "")
    private static let day = TimeSpan.seconds(86_400)

    static let archive = Flag<String>(
        "archive", "DIR", required: false,
        help: """
            Copies every commit to the archive in this directory, which should be on another machine or disk: hearth \
            restore makes the state of any time of it. It is created if it does not exist.
            """)
    static let interval = Flag(
        "archive-interval", "TIME", default: span(defaults.intervalMilliseconds),
        in: TimeSpan(milliseconds: 100)...TimeSpan.seconds(3_600),
        help: "The archive has a commit after this time at the latest, unless it lags.")
    static let retention = Flag(
        "archive-retention", "TIME", default: span(defaults.retentionMilliseconds),
        in: TimeSpan.seconds(0)...TimeSpan.seconds(3_660 * 86_400),
        help: "How far back a restore from the archive reaches. What is older is removed.")
    static let baseInterval = Flag(
        "archive-base-interval", "TIME", default: span(defaults.baseMilliseconds),
        in: TimeSpan.seconds(1)...TimeSpan.seconds(366 * 86_400),
        help: """
            Age of the archive's newest base at which another is made. One is also made when the commits since are as \
            large as it, and at least 256 MiB.
            """)
    static let held = Flag(
        "archive-max-lag", "SIZE", default: ByteCount(bytes: defaults.logHeldBytesMax),
        in: ByteCount.mebibytes(1)...ByteCount(bytes: 1 << 40),
        help: """
            Bytes of the log that are kept on the disk of the data directory while the archive lags. Beyond, the \
            archive continues with a new base, and the time between cannot be restored.
            """)
    static let all: [any FlagDeclaration] = [archive, interval, retention, baseInterval, held]

    private static func span(_ milliseconds: UInt64) -> TimeSpan { TimeSpan(milliseconds: Int(milliseconds)) }

    /// The settings of an archive; nil without one.
    static func settings(_ arguments: ParsedArguments, _ log: Log) -> ArchiveSettings? {
        guard let directory = arguments.value(of: archive) else { return nil }
        var settings = ArchiveSettings(directory: directory)
        settings.intervalMilliseconds = UInt64(arguments[interval].milliseconds)
        settings.retentionMilliseconds = UInt64(arguments[retention].milliseconds)
        settings.baseMilliseconds = UInt64(arguments[baseInterval].milliseconds)
        settings.logHeldBytesMax = arguments[held].bytes
        settings.onEvent = { write($0, directory, log) }
        return settings
    }

    private static func write(_ event: ArchiveEvent, _ directory: String, _ log: Log) {
        switch event {
        case .opened(let version): log(.info, "archive_opened", ["directory": directory, "version": "\(version)"])
        case .sameDevice:
            let message = "the archive is on the device of the data, and will be lost with it"
            log(.warning, "archive_on_same_device", ["directory": directory, "message": message])
        case .base(let version, let bytes):
            log(.info, "archive_base", ["version": "\(version)", "bytes": "\(bytes)"])
        case .gap(let after, let until):
            let message = "the log had no more room for what the archive lacked; a new base is being made"
            log(.error, "archive_gap", ["after": "\(after)", "until": "\(until)", "message": message])
        case .waiting:
            let message = "another process has the lock of the archive; this one continues when it is free"
            log(.warning, "archive_waiting", ["directory": directory, "message": message])
        case .failing(let error): log(.error, "archive_failing", ["message": "\(error)"])
        case .recovered: log(.info, "archive_recovered")
        case .damaged(let error): log(.error, "archive_damaged", ["message": "\(error)"])
        case .pruned(let bases, let files):
            log(.info, "archive_pruned", ["bases": "\(bases)", "files": "\(files)"])
        case .incomplete(let version):
            let message = "the server ended before the archive had its last commits; the next start continues"
            log(.error, "archive_incomplete", ["version": "\(version)", "message": message])
        }
    }
}
