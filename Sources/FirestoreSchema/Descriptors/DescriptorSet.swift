// What `proto/` says, as data inside the program: the one source of field names, numbers, types and oneofs.
//
//   proto/*.proto ──Tools/generate-proto──▶ FileDescriptorSet in base64 ──▶ `files` ──▶ server reflection (the bytes)
//                                                                                  └──▶ the JSON mapping (the tables)
//
// The set is decoded when it is first asked for, and then kept.

internal import Basics
internal import DocumentJSON
internal import DocumentModel

/// The descriptors of every file under `proto/`.
package enum DescriptorSet {
    /// A `google.protobuf.FileDescriptorSet` {1 file*}.
    package static let bytes: [UInt8] = {
        let text = Array(base64.utf8)
        guard let bytes = Base64.decode(text.span) else { fatalError("the embedded descriptor set is not base64") }
        return bytes
    }()

    /// Every file, each after those that it imports.
    package static let files: [FileDescriptor] = {
        do throws(InvalidDocument) {
            return try FileDescriptor.all(in: bytes.byteSpan)
        } catch {
            fatalError("the embedded descriptor set is damaged: \(error.message)")
        }
    }()
}
