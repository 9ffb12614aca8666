// Stages of pipelines, for requests.

import Basics
import DocumentModel

/// The bytes of a stage.
struct PipelineStage {
    private let bytes: [UInt8]

    init(_ name: String, _ arguments: (inout ByteBuffer) -> Void...) {
        var writer = ByteBuffer()
        writer.appendField(FieldNumber.Pipeline.Stage.name, string: name)
        for argument in arguments {
            writer.withLengthPrefix(field: FieldNumber.Pipeline.Stage.args) { argument(&$0) }
        }
        bytes = writer.copyBytes()
    }

    private init(_ name: String, values: [Value]) {
        var writer = ByteBuffer()
        writer.appendField(FieldNumber.Pipeline.Stage.name, string: name)
        for value in values {
            writer.withLengthPrefix(field: FieldNumber.Pipeline.Stage.args) { value.encode(into: &$0) }
        }
        bytes = writer.copyBytes()
    }

    static func collection(_ path: String) -> PipelineStage {
        PipelineStage("collection", values: [.reference("/\(path)")])
    }

    static func documents(_ paths: [String]) -> PipelineStage {
        PipelineStage("documents", values: paths.map { .reference("/\($0)") })
    }

    static func limit(_ count: Int64) -> PipelineStage { PipelineStage("limit", values: [.integer(count)]) }

    /// Rows with this owner.
    static func whereOwner(_ owner: String) -> PipelineStage {
        PipelineStage("where") { argument in
            argument.withLengthPrefix(field: FieldNumber.Value.functionValue) { call in
                call.appendField(FieldNumber.Function.name, string: "equal")
                call.withLengthPrefix(field: FieldNumber.Function.args) {
                    $0.appendField(FieldNumber.Value.fieldReferenceValue, string: "owner")
                }
                call.withLengthPrefix(field: FieldNumber.Function.args) { Value.string(owner).encode(into: &$0) }
            }
        }
    }

    static func union(_ stages: [PipelineStage]) -> PipelineStage {
        PipelineStage("union") { argument in
            argument.withLengthPrefix(field: FieldNumber.Value.pipelineValue) { encode(stages, into: &$0) }
        }
    }

    /// Rows with the results of a subquery.
    static func selectAll(of stages: [PipelineStage]) -> PipelineStage {
        PipelineStage("select") { argument in
            argument.withLengthPrefix(field: FieldNumber.Value.mapValue) { map in
                map.withLengthPrefix(field: FieldNumber.MapValue.fields) { entry in
                    entry.appendField(FieldNumber.MapValue.FieldsEntry.key, string: "x")
                    entry.withLengthPrefix(field: FieldNumber.MapValue.FieldsEntry.value) { value in
                        value.withLengthPrefix(field: FieldNumber.Value.functionValue) { call in
                            call.appendField(FieldNumber.Function.name, string: "array")
                            call.withLengthPrefix(field: FieldNumber.Function.args) { argument in
                                argument.withLengthPrefix(field: FieldNumber.Value.pipelineValue) {
                                    encode(stages, into: &$0)
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    private static func encode(_ stages: [PipelineStage], into writer: inout ByteBuffer) {
        for stage in stages { writer.appendField(FieldNumber.Pipeline.stages, bytes: stage.bytes) }
    }

    /// The bytes of a `StructuredPipeline`.
    static func pipeline(_ stages: [PipelineStage]) -> [UInt8] {
        var writer = ByteBuffer()
        writer.withLengthPrefix(field: FieldNumber.StructuredPipeline.pipeline) { encode(stages, into: &$0) }
        return writer.copyBytes()
    }
}
