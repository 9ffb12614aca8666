// Prometheus' text format, version 0.0.4 (prometheus.io, "Exposition formats").

internal import Basics

/// Builds a page of metrics, family by family.
struct MetricsText {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var text = ""
    /// Of the family being written.
    private var name = ""

    /// What a family's numbers do; a histogram's are given to ``histogram(_:_:buckets:scale:)``.
    enum Kind: String {
        /// They only grow, and begin again with the process.
        case counter
        /// They go up and down.
        case gauge
        case histogram
    }

    /// Begins a family.
    mutating func family(_ name: String, _ kind: Kind, _ help: String) {
        self.name = name
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    }

    /// One number of the family.
    mutating func sample(_ labels: KeyValuePairs<String, String>, _ value: some MetricsNumber) {
        append("", labels.map { ($0, $1) }, value.metricsText)
    }

    /// A family of one number.
    mutating func single(_ name: String, _ kind: Kind, _ help: String, _ value: some MetricsNumber) {
        family(name, kind, help)
        sample([:], value)
    }

    /// A histogram's numbers: of its buckets those whose upper bound lies in `bounds`, as cumulative counts.
    ///
    /// - Parameter scale: what to divide values by, as 1e9 for nanoseconds that are shown in seconds.
    mutating func histogram(
        _ labels: KeyValuePairs<String, String>, _ reading: HistogramReading, buckets: ClosedRange<Int>, scale: Double
    ) {
        histogram(labels.map { ($0, $1) }, reading, buckets: buckets, scale: scale)
    }

    /// The same with labels that are known later.
    mutating func histogram(
        _ labels: [(String, String)], _ reading: HistogramReading, buckets: ClosedRange<Int>, scale: Double
    ) {
        var below: UInt64 = 0
        for (bucket, count) in reading.counts.enumerated() {
            below &+= count
            guard buckets.contains(bucket) else { continue }
            let bound = Double(HistogramReading.upperBound(bucket)) / scale
            append("_bucket", labels + [("le", scale == 1 ? String(Int(bound)) : bound.description)], String(below))
        }
        append("_bucket", labels + [("le", "+Inf")], String(below))
        append("_sum", labels, scale == 1 ? String(reading.sum) : (Double(reading.sum) / scale).description)
        append("_count", labels, String(below))
    }

    mutating func append(_ suffix: String, _ labels: [(String, String)], _ value: String) {
        text += name + suffix
        if !labels.isEmpty {
            text += "{" + labels.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",") + "}"
        }
        text += " \(value)\n"
    }

    private static func escaped(_ value: String) -> String {
        var escaped = ""
        for character in value.unicodeScalars {
            switch character {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }
}

/// A number as the format writes it.
protocol MetricsNumber {
    var metricsText: String { get }
}

extension UInt64: MetricsNumber { var metricsText: String { String(self) } }
extension Int: MetricsNumber { var metricsText: String { String(self) } }
extension Bool: MetricsNumber { var metricsText: String { self ? "1" : "0" } }
extension Double: MetricsNumber { var metricsText: String { description } }
