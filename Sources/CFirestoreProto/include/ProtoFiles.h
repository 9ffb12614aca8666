// The files under proto/ with the descriptors that protobuf-c generates for what they declare. Tools/generate-proto writes
// the tables (ProtoFiles.c). All of it is constant and lives as long as the program.
#pragma once

#include <protobuf-c/protobuf-c.h>

/// One .proto file.
typedef struct {
    /// The path by which other files import it.
    const char *name;
    /// The files it imports; ends in NULL, as the lists below do.
    const char *const *imports;
    /// Nested ones and map entries too.
    const ProtobufCMessageDescriptor *const *messages;
    const ProtobufCEnumDescriptor *const *enumerations;
    const ProtobufCServiceDescriptor *const *services;
    /// A serialized `FileDescriptorSet` with this file alone. Server reflection sends it, and protobuf-c's descriptors
    /// cannot be made into it: they have neither imports nor options.
    const uint8_t *set;
    size_t set_size;
} FirestoreProtoFile;

/// The file at an index, each after those that it imports; NULL past the last.
const FirestoreProtoFile *firestore_proto_file(size_t index);

/// A member of a oneof. protobuf-c's descriptors say which fields share a oneof, but not what it is called.
typedef struct {
    /// The message's full name.
    const char *message;
    uint32_t field;
    const char *oneof;
} FirestoreProtoOneofMember;

/// The member of a oneof at an index, in no order to be relied on; NULL past the last.
const FirestoreProtoOneofMember *firestore_proto_oneof_member(size_t index);
