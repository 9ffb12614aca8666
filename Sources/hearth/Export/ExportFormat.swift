/// How `hearth export` writes documents.
enum ExportFormat: String, FlagValue, CaseIterable {
    case lines
    case csv
    case managed

    static func parse(_ text: String) throws(FlagTextError) -> ExportFormat {
        guard let format = ExportFormat(rawValue: text) else {
            throw FlagTextError(expected: "lines, csv or managed")
        }
        return format
    }

    var flagText: String { rawValue }
}
