// Values as texts for people.

internal import DocumentJSON
internal import Expressions

enum OperandText {
    /// The value as the language writes it, cut at `max` characters.
    static func text(_ operand: Operand, max: Int) -> String {
        var text = ""
        append(operand, to: &text, max: max)
        return text.count > max ? text.prefix(max) + "…" : text
    }

    private static func append(_ operand: Operand, to text: inout String, max: Int) {
        if text.utf8.count > 4 * max { return }
        switch operand {
        case .absent: text += "absent"
        case .string(let content): text += "'" + content.prefix(max) + "'"
        case .bytes(let bytes): text += "bytes(\(bytes.count))"
        case .timestamp(let time):
            var bytes: [UInt8] = []
            RFC3339.append(time, to: &bytes)
            text += String(decoding: bytes, as: UTF8.self)
        case .geoPoint(let point): text += "latlng(\(point.latitude), \(point.longitude))"
        case .list, .encodedList:
            text += "["
            for (index, element) in (operand.elements ?? []).prefix(max).enumerated() {
                if index > 0 { text += ", " }
                append(element, to: &text, max: max)
            }
            text += "]"
        case .map, .encodedMap:
            text += "{"
            for (index, entry) in (operand.entries ?? [:]).entries.prefix(max).enumerated() {
                if index > 0 { text += ", " }
                text += "'\(entry.key)': "
                append(entry.value, to: &text, max: max)
            }
            text += "}"
        case .object(let object): append(object, to: &text, max: max)
        default: text += (try? Conversions.text(operand)) ?? RulesType(operand).rawValue
        }
    }

    private static func append(_ object: any LanguageValue, to text: inout String, max: Int) {
        switch object {
        case let path as RulesPath: text += path.text
        case let duration as RulesDuration: text += "\(duration.seconds)s \(duration.nanoseconds)ns"
        case let set as RulesSet:
            text += "set"
            append(.list(set.members.prefix(max).map(\.operand)), to: &text, max: max)
        default: text += RulesType(.object(object)).rawValue
        }
    }
}
