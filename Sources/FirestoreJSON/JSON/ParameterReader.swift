// The parameters of a URL as the wire bytes of a message: `mask.fieldPaths=a&mask.fieldPaths=b&pageSize=10`.
//
// A name is a path of fields, in lowerCamelCase or as in `proto/`. A repeated field takes one parameter for each
// element. Maps and messages without a text form cannot be parameters (google/api/http.proto).

package import Basics
internal import DocumentJSON
internal import DocumentModel

/// One parameter, decoded.
package struct Parameter: Equatable, Sendable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// Appends parameters as the fields of a message.
package struct ParameterReader: Sendable {
    private let schema: Schema

    package init(schema: Schema = .shared) {
        self.schema = schema
    }

    /// Appends the fields that the parameters set.
    ///
    /// - Throws: INVALID_ARGUMENT for a name that the message does not know and a value that does not fit.
    package func append(
        _ parameters: [Parameter], _ type: MessageType, to output: inout ByteBuffer
    ) throws(RequestError) {
        var bound: [Bound] = []
        for parameter in parameters { bound.append(try bind(parameter, type.number)) }
        try append(bound[...], depth: 0, type.number, &output)
    }

    /// A parameter with the fields that its name leads through.
    private struct Bound {
        let path: [Int]
        let parameter: Parameter
    }

    private func bind(_ parameter: Parameter, _ type: Int) throws(RequestError) -> Bound {
        var path: [Int] = []
        var message: Int? = type
        for part in parameter.name.split(separator: ".", omittingEmptySubsequences: false) {
            let name = Array(part.utf8)
            guard let current = message, let index = schema.messages[current].field(named: name.byteSpan) else {
                throw unknown(parameter)
            }
            let field = schema.messages[current].fields[index]
            path.append(index)
            let leadsOn = field.kind == .message && !field.isRepeated && schema.messages[field.type].form == .object
            message = leadsOn ? field.type : nil
            if !leadsOn, field.kind == .message, field.isRepeated { throw unknown(parameter) }
        }
        // The last part must be something that a text can be.
        if message != nil { throw unknown(parameter) }
        return Bound(path: path, parameter: parameter)
    }

    private func unknown(_ parameter: Parameter) -> RequestError {
        .invalidArgument(
            "Invalid JSON payload received. Unknown name \"\(parameter.name)\": Cannot bind query parameter. "
                + "Field '\(parameter.name)' could not be found in request message.")
    }

    /// Appends the fields of one message, those of one submessage together.
    private func append(
        _ bound: ArraySlice<Bound>, depth: Int, _ type: Int, _ output: inout ByteBuffer
    ) throws(RequestError) {
        var rest = bound
        while let first = rest.first {
            let index = first.path[depth]
            let field = schema.messages[type].fields[index]
            let same = rest.filter { $0.path[depth] == index }
            rest = rest.filter { $0.path[depth] != index }[...]
            try checkOneof(field, type, rest, depth)
            if first.path.count > depth + 1 {
                output.appendTag(field: field.number, .lengthDelimited)
                let place = output.beginLength()
                try append(same[...], depth: depth + 1, field.type, &output)
                output.endLength(at: place)
            } else {
                if same.count > 1, !field.isRepeated {
                    throw .invalidArgument("The query parameter \"\(first.parameter.name)\" is given twice.")
                }
                for one in same { try append(one.parameter, field, &output) }
            }
        }
    }

    private func checkOneof(_ field: FieldTable, _ type: Int, _ others: ArraySlice<Bound>, _ depth: Int)
        throws(RequestError)
    {
        guard let oneof = field.oneof else { return }
        let table = schema.messages[type]
        if others.contains(where: { table.fields[$0.path[depth]].oneof == oneof }) {
            throw .invalidArgument("The query parameters set the oneof field '\(table.oneofs[oneof])' twice.")
        }
    }

    private func append(
        _ parameter: Parameter, _ field: FieldTable, _ output: inout ByteBuffer
    ) throws(RequestError) {
        let text = parameter.value
        func bad(_ expected: String) -> RequestError {
            .invalidArgument("Invalid value at '\(parameter.name)': \"\(text.prefix(100))\" is not \(expected).")
        }
        switch field.kind {
        case .string: output.appendField(field.number, string: text)
        case .bytes:
            guard let bytes = Base64.decodeAnyForm(Array(text.utf8).span) else { throw bad("base64") }
            output.appendField(field.number, bytes: bytes)
        case .bool:
            guard let value = ScalarText.boolean(text) else { throw bad("true or false") }
            output.appendField(field.number, boolean: value)
        case .enumeration:
            let table = schema.enumerations[field.type]
            guard let value = table.number(text, allowsNames: true) else { throw bad("a value of \(table.name)") }
            output.appendField(field.number, int64: Int64(value))
        case .message: try appendMessage(parameter, field, &output)
        default:
            guard let bits = field.kind.bits(ofNumber: text, allowsNames: true) else {
                throw bad(field.kind.numberName)
            }
            output.appendNumber(field, bits: bits)
        }
    }

    /// Messages that have a text form: timestamps, and the wrappers of scalars.
    private func appendMessage(
        _ parameter: Parameter, _ field: FieldTable, _ output: inout ByteBuffer
    ) throws(RequestError) {
        let table = schema.messages[field.type]
        switch table.form {
        case .timestamp:
            guard let time = RFC3339.timestamp(Array(parameter.value.utf8).span) else {
                let text = parameter.value.prefix(100)
                throw .invalidArgument(
                    "Invalid value at '\(parameter.name)': \"\(text)\" is not an RFC 3339 timestamp.")
            }
            output.appendField(field.number, timestamp: time)
        case .wrapper:
            output.appendTag(field: field.number, .lengthDelimited)
            let place = output.beginLength()
            try append(parameter, table.fields[0], &output)
            output.endLength(at: place)
        case .fieldMask, .duration:
            output.appendTag(field: field.number, .lengthDelimited)
            let place = output.beginLength()
            if table.form == .fieldMask {
                FieldMaskText.append(parameter.value, as: &output)
            } else if !DurationText.append(parameter.value, as: &output) {
                let text = parameter.value.prefix(100)
                throw .invalidArgument(
                    "Invalid value at '\(parameter.name)': \"\(text)\" is not a number of seconds with an s.")
            }
            output.endLength(at: place)
        case .object, .any, .structure, .value, .list: throw unknown(parameter)
        }
    }
}
