internal import FirestoreJSON
internal import FirestoreMessages

/// The message types of the methods that have REST paths, for protocols that carry JSON.
enum MethodMessages {
    private static let byMethod: [Method: (input: MessageType, output: MessageType)] = {
        var types: [Method: (input: MessageType, output: MessageType)] = [:]
        let services: Set<Method.Service> = [.firestore, .firestoreAdmin, .operations]
        for method in Method.allCases where services.contains(method.service) {
            let service = method.paths[0].split(separator: "/")[0]
            let descriptors = DescriptorSet.files.flatMap(\.services).filter { $0.fullName == service }
            guard let descriptor = descriptors.flatMap(\.methods).first(where: { $0.name == method.name }) else {
                continue
            }
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
