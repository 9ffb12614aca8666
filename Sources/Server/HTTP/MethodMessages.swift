internal import FirestoreJSON
internal import FirestoreMessages

/// The message types of the methods of Firestore, for protocols that carry JSON.
enum MethodMessages {
    private static let byMethod: [Method: (input: MessageType, output: MessageType)] = {
        let descriptors = DescriptorSet.files.flatMap(\.services).flatMap(\.methods)
        var types: [Method: (input: MessageType, output: MessageType)] = [:]
        for method in Method.ofFirestore {
            guard let descriptor = descriptors.first(where: { $0.name == method.name }) else { continue }
            types[method] = (Schema.shared.message(descriptor.inputType), Schema.shared.message(descriptor.outputType))
        }
        return types
    }()

    /// The types of a method's request and response.
    static func of(_ method: Method) -> (input: MessageType, output: MessageType) {
        guard let types = byMethod[method] else { preconditionFailure("proto/ declares no \(method.name)") }
        return types
    }
}
