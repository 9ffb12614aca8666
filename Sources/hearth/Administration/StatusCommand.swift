// `hearth status`: what the server of a data directory does, and what it needs.

import Basics
import DocumentJSON

/// Prints the figures of a server that an operator looks at first.
enum StatusCommand: BlockingSubcommand {
    static let name = "status"
    static let summary = "Prints what the server of a data directory does, and the memory that it takes."
    static let words: [String] = []
    static let json = Flag(
        switch: "json", help: "Print one object; its member memory has the bytes and the bound of each part.")
    static let flagGroups = [
        FlagGroup(heading: "Flags", flags: [HealthCommand.data, HealthCommand.timeout, json])
    ]

    static let discussion = """
        Asks over the socket admin.sock in the data directory, as hearth health does, and
        prints some of the figures of /metrics: connections, open calls and transactions,
        documents written and commits since the start, the size of the files, the memory
        of the process, and of each part (--memory) what it takes, and its bound if it has
        one. The page /metrics has all figures, with their history in Prometheus.

        Examples:

          hearth status --data /var/lib/hearth
          hearth status --data /var/lib/hearth --json
        """

    /// A figure: its name, and the families of metrics that are added up for it.
    private static let figures: [(name: String, families: [String])] = [
        ("connections", ["hearth_connections_open"]), ("streams", ["hearth_streams_open"]),
        ("transactions", ["hearth_transactions_open"]), ("commits", ["hearth_commits_total"]),
        ("documentsWritten", ["hearth_documents_written_total"]),
        ("databases", ["hearth_databases"]), ("diskBytes", ["hearth_run_file_bytes", "hearth_log_file_bytes"]),
        ("processBytes", ["process_resident_memory_bytes"]),
    ]

    static func run(_ arguments: ParsedArguments) throws {
        let reply = try LocalPage.get(
            "/metrics", directory: arguments[HealthCommand.data],
            milliseconds: arguments[HealthCommand.timeout].milliseconds)
        guard reply.status == 200 else { throw CommandFailure(reply.body) }
        let samples = MetricSamples(reply.body)
        let values = figures.map { ($0.name, Int64($0.families.reduce(0) { $0 + samples.sum($1) })) }
        let memory = samples.labelled("hearth_memory_bytes", "part").map { part, bytes in
            let most = samples.value("hearth_memory_max_bytes", "part", part)
            return (part: part, bytes: Int64(bytes), most: most.map { Int64($0) })
        }
        if arguments[json] {
            var members = Dictionary(uniqueKeysWithValues: values.map { ($0.0, JSONValue.integer($0.1)) })
            members["memory"] = .array(
                memory.map {
                    let most = $0.most.map(JSONValue.integer) ?? .null
                    return .object(["part": .string($0.part), "bytes": .integer($0.bytes), "max": most])
                })
            return try StandardOutput.print(JSONValue.object(members).json)
        }
        for (name, value) in values { try StandardOutput.print("\(name)\t\(value)") }
        for part in memory {
            let bound = part.most.map { " of \($0)" } ?? ""
            try StandardOutput.print("memory of \(part.part)\t\(part.bytes)\(bound) bytes")
        }
    }
}

/// The samples of a page in the text format of Prometheus.
struct MetricSamples {
    private var samples: [(family: String, labels: String, value: Double)] = []

    init(_ page: String) {
        for line in page.split(separator: "\n") where !line.hasPrefix("#") {
            guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...]) else {
                continue
            }
            let name = line[..<space]
            let brace = name.firstIndex(of: "{") ?? name.endIndex
            samples.append((String(name[..<brace]), String(name[brace...]), value))
        }
    }

    /// The sum of a family over its labels.
    func sum(_ family: String) -> Double { samples.filter { $0.family == family }.reduce(0) { $0 + $1.value } }

    /// The samples of a family by the value of a label, in the order of the page.
    func labelled(_ family: String, _ label: String) -> [(String, Double)] {
        samples.filter { $0.family == family }.compactMap { sample in
            Self.value(of: label, in: sample.labels).map { ($0, sample.value) }
        }
    }

    func value(_ family: String, _ label: String, _ value: String) -> Double? {
        labelled(family, label).first { $0.0 == value }?.1
    }

    private static func value(of label: String, in labels: String) -> String? {
        guard let start = labels.firstRange(of: "\(label)=\"")?.upperBound,
            let end = labels[start...].firstIndex(of: "\"")
        else { return nil }
        return String(labels[start..<end])
    }
}
