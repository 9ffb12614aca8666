internal import CFirestoreProto

/// One `.proto` file: its messages, enumerations and services.
///
/// Descriptors are copied once from those that protobuf-c generates. These are constants of the program, so every
/// pointer stays valid, and nothing writes to them.
package struct FileDescriptor: Sendable {
    /// The path by which other files import it, for example `google/firestore/v1/firestore.proto`.
    package let name: String
    /// The package that its names are in, for example `google.firestore.v1`.
    package let package: String
    /// The names of the files it imports.
    package let dependencies: [String]
    /// A `google.protobuf.FileDescriptorSet` with this file alone, as server reflection sends it.
    package let set: [UInt8]
    /// Nested ones too.
    package let messages: [MessageDescriptor]
    package let enumerations: [EnumDescriptor]
    package let services: [ServiceDescriptor]

    /// The full name of everything declared here that can be asked for: messages, enumerations, services, methods.
    package var symbols: [String] {
        messages.map(\.fullName) + enumerations.map(\.fullName)
            + services.flatMap { service in
                [service.fullName] + service.methods.map { "\(service.fullName).\($0.name)" }
            }
    }

    /// Every file that the generated code knows, each after those that it imports.
    static func all() -> [FileDescriptor] {
        let oneofs = OneofNames()
        var files: [FileDescriptor] = []
        while let file = unsafe firestore_proto_file(files.count) {
            files.append(unsafe FileDescriptor(file.pointee, oneofs))
        }
        return files
    }

    init(_ file: FirestoreProtoFile, _ oneofs: OneofNames) {
        name = unsafe String(cString: file.name)
        dependencies = unsafe elements(file.imports).map { unsafe String(cString: $0) }
        set = unsafe Array(UnsafeBufferPointer(start: file.set, count: file.set_size))
        let messages = unsafe elements(file.messages)
        let services = unsafe elements(file.services)
        package =
            unsafe messages.first.map { unsafe String(cString: $0.pointee.package_name) }
            ?? services.first.map { unsafe String(cString: $0.pointee.package) } ?? ""
        self.messages = unsafe messages.map { unsafe MessageDescriptor($0.pointee, oneofs) }
        self.services = unsafe services.map { unsafe ServiceDescriptor($0.pointee) }
        enumerations = unsafe elements(file.enumerations).map { unsafe EnumDescriptor($0.pointee) }
    }
}

/// One message type.
package struct MessageDescriptor: Sendable {
    /// With package and enclosing messages, for example `google.firestore.v1.StructuredQuery.Order`.
    package let fullName: String
    /// By increasing number.
    package let fields: [FieldDescriptor]
    /// Its oneofs, in the order that ``FieldDescriptor/oneofIndex`` counts.
    package let oneofs: [String]

    fileprivate init(_ message: ProtobufCMessageDescriptor, _ names: OneofNames) {
        let fullName = unsafe String(cString: message.name)
        var oneofs: [String] = []
        var fields: [FieldDescriptor] = []
        for index in 0..<Int(unsafe message.n_fields) {
            var field = unsafe FieldDescriptor(message.fields[index], of: fullName)
            if let oneof = names[fullName, field.number] {
                if !oneofs.contains(oneof) { oneofs.append(oneof) }
                field.oneofIndex = oneofs.firstIndex(of: oneof)
            }
            fields.append(field)
        }
        self.fullName = fullName
        self.fields = fields
        self.oneofs = oneofs
    }
}

/// One field of a message.
package struct FieldDescriptor: Sendable {
    package let name: String
    /// The name in lowerCamelCase, as `protoc` makes it.
    package let jsonName: String
    /// 1 ... 536,870,911.
    package let number: Int
    package let kind: FieldKind
    package let isRepeated: Bool
    /// Whether it is a map: repeated entries {1 key, 2 value} of a message that `protoc` made for it.
    package let isMap: Bool
    /// The full name of the message or enumeration; else empty.
    package let typeName: String
    /// Which of the message's oneofs it is a member of; nil for none.
    package fileprivate(set) var oneofIndex: Int?

    fileprivate init(_ field: ProtobufCFieldDescriptor, of message: String) {
        let name = unsafe String(cString: field.name)
        self.name = name
        jsonName = Self.camelCase(name, isType: false)
        number = Int(unsafe field.id)
        kind = FieldKind(unsafe field.type)
        isRepeated = unsafe field.label == PROTOBUF_C_LABEL_REPEATED
        typeName = unsafe kind.typeName(field.descriptor)
        // The name is reserved: protoc refuses a message that would be called so beside a map.
        isMap = isRepeated && typeName == "\(message).\(Self.camelCase(name, isType: true))Entry"
    }

    private static func camelCase(_ name: String, isType: Bool) -> String {
        let words = name.split(separator: "_").enumerated().map { index, word in
            index == 0 && !isType ? String(word) : word.prefix(1).uppercased() + word.dropFirst()
        }
        return words.joined()
    }
}

/// One enumeration.
package struct EnumDescriptor: Sendable {
    /// With package and enclosing messages.
    package let fullName: String
    /// By increasing number.
    package let values: [(name: String, number: Int32)]

    fileprivate init(_ enumeration: ProtobufCEnumDescriptor) {
        fullName = unsafe String(cString: enumeration.name)
        values = (0..<Int(unsafe enumeration.n_values)).map { index in
            let value = unsafe enumeration.values[index]
            return unsafe (String(cString: value.name), value.value)
        }
    }
}

/// One service.
package struct ServiceDescriptor: Sendable {
    /// With its package, for example `google.firestore.v1.Firestore`.
    package let fullName: String
    package let methods: [MethodDescriptor]

    fileprivate init(_ service: ProtobufCServiceDescriptor) {
        fullName = unsafe String(cString: service.name)
        methods = (0..<Int(unsafe service.n_methods)).map { index in
            let method = unsafe service.methods[index]
            return unsafe MethodDescriptor(
                name: String(cString: method.name), inputType: String(cString: method.input.pointee.name),
                outputType: String(cString: method.output.pointee.name))
        }
    }
}

/// One RPC of a service.
package struct MethodDescriptor: Sendable {
    package let name: String
    /// Full names of the messages it takes and gives.
    package let inputType: String
    package let outputType: String
}

/// The names of oneofs by message and member.
struct OneofNames {
    private var names: [String: String] = [:]

    init() {
        var index = 0
        while let member = unsafe firestore_proto_oneof_member(index)?.pointee {
            unsafe names["\(String(cString: member.message)) \(member.field)"] = String(cString: member.oneof)
            index += 1
        }
    }

    subscript(message: String, field: Int) -> String? { names["\(message) \(field)"] }
}

/// The elements of a C array that ends in a null pointer.
private func elements<Element>(_ list: UnsafePointer<UnsafePointer<Element>?>) -> [UnsafePointer<Element>] {
    var found: [UnsafePointer<Element>] = unsafe []
    while let element = unsafe list[found.count] { unsafe found.append(element) }
    return unsafe found
}
