// The form of a pipeline: everything but its values and the ids of documents.
//
//     collection(users/*/books) | where(greater_than(rating, ?)) | aggregate({n: count()}, {genre: genre})

internal import Basics
internal import DocumentModel
internal import Expressions

/// What pipelines have in common that differ in values alone.
package struct PipelineForm: Sendable {
    private let stages: [PipelineStage]

    init(_ stages: [PipelineStage]) { self.stages = stages }

    /// Combines everything that ``text`` has before it is cut.
    package func hash(into hasher: inout Hasher) {
        var words = HashedWords(hasher: hasher)
        words.append(stages)
        hasher = words.hasher
    }

    /// In the words of `hearth query --pipeline`, with a question mark for each value; cut after 300 characters.
    package var text: String {
        var words = TextWords()
        words.append(stages)
        return String(words.text.prefix(TextWords.charactersMax))
    }
}

/// Takes the words of a form one after the other.
private protocol FormWords {
    mutating func append(_ word: String)
    mutating func append(_ path: FieldPath)
}

private struct HashedWords: FormWords {
    var hasher: Hasher

    mutating func append(_ word: String) { hasher.combine(word) }

    mutating func append(_ path: FieldPath) { hasher.combine(path) }
}

private struct TextWords: FormWords {
    static let charactersMax = 300
    var text = ""

    mutating func append(_ word: String) {
        // No character has more bytes than a field name may have.
        if text.utf8.count < 4 * Self.charactersMax { text += word.prefix(Self.charactersMax) }
    }

    mutating func append(_ path: FieldPath) { append(path.description) }
}

extension FormWords {
    private static var value: String { "?" }

    mutating func append(_ stages: [PipelineStage]) {
        for (number, stage) in stages.enumerated() {
            if number > 0 { append(" | ") }
            append(stage)
        }
    }

    private mutating func append(_ stage: PipelineStage) {
        append(stage.name)
        append("(")
        switch stage.name {
        // However many there are.
        case "documents", "literals": append(Self.value)
        case "collection", "collection_group", "subcollection":
            // A group below the root has an empty parent.
            append(stage.arguments.filter { !$0.isEmptyReference }) { words, argument in words.append(path: argument) }
        case "sort":
            append(stage.arguments) { words, argument in words.append(order: argument) }
        default: append(stage.arguments) { words, argument in words.append(argument) }
        }
        for option in stage.options {
            append(", ")
            append(option)
        }
        append(")")
    }

    private mutating func append(
        _ arguments: [PipelineValue], _ body: (inout Self, PipelineValue) -> Void
    ) {
        for (number, argument) in arguments.enumerated() {
            if number > 0 { append(", ") }
            body(&self, argument)
        }
    }

    private mutating func append(_ value: PipelineValue) {
        switch value {
        // The keys of a map name fields of the row.
        case .literal(.map(let map)) where map.entries.isEmpty: append("{}")
        case .literal: append(Self.value)
        case .field(let path): append(path)
        case .document(let property): append(property.word)
        case .variable(let name):
            append("$")
            append(name)
        case .call(let call):
            append(call.name)
            append("(")
            append(call.arguments) { words, argument in words.append(argument) }
            append(")")
        case .pipeline(let stages): append(stages)
        case .list(let elements):
            append("[")
            append(elements) { words, element in words.append(element) }
            append("]")
        case .map(let entries):
            append("{")
            for (number, entry) in entries.enumerated() {
                if number > 0 { append(", ") }
                append(entry)
            }
            append("}")
        }
    }

    private mutating func append(_ entry: NamedValue) {
        append(entry.name)
        append(": ")
        append(entry.value)
    }

    /// The path of a collection, with a star for each id of a document; of a text the text.
    private mutating func append(path value: PipelineValue) {
        switch value.literal {
        case .reference(let path)?:
            // A full name has five segments before the path.
            let segments = path.utf8.split(separator: RelativePath.slash)
                .dropFirst(path.utf8.starts(with: "projects/".utf8) ? 5 : 0)
            for (number, segment) in segments.enumerated() {
                if number > 0 { append("/") }
                append(number.isMultiple(of: 2) ? String(Substring(segment)) : "*")
            }
        case .string(let text)?: append(text)
        default: append(value)
        }
    }

    /// An ordering: a map with an expression and a direction. The direction is part of the form.
    private mutating func append(order value: PipelineValue) {
        guard let entries = value.entries else { return append(value) }
        for entry in entries where entry.name == "expression" { append(entry.value) }
        for entry in entries where entry.name == "direction" && entry.value.text == "descending" { append(" desc") }
    }
}

extension PipelineValue {
    fileprivate var isEmptyReference: Bool {
        if case .reference("")? = literal { true } else { false }
    }
}

extension DocumentProperty {
    fileprivate var word: String {
        switch self {
        case .name: "__name__"
        case .createTime: "__create_time__"
        case .updateTime: "__update_time__"
        case .score: "score()"
        }
    }
}
