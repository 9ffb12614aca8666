/// The descriptors of every file under `proto/`: the one source of field names, numbers, types and oneofs.
///
///     proto/*.proto ──Tools/generate-proto──▶ protobuf-c descriptors ──▶ `files` ──▶ the JSON mapping (the tables)
///                                         └─▶ serialized descriptors ──▶ server reflection (the bytes)
package enum DescriptorSet {
    /// Every file, each after those that it imports. Read once, when it is first asked for.
    package static let files: [FileDescriptor] = FileDescriptor.all()
}
