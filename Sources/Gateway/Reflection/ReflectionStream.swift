// grpc.reflection.v1.ServerReflection, and v1alpha, which has the same messages: what this server offers, for grpcurl and its like.
// ServerReflectionRequest: 1 host, 3 file_by_filename | 4 file_containing_symbol | 5 file_containing_extension |
// 6 all_extension_numbers_of_type | 7 list_services. ServerReflectionResponse: 1 valid_host, 2 original_request,
// 4 file_descriptor_response {1 file*} | 5 all_extension_numbers_response {1 base_type_name} | 6 list_services_response
// {1 service* {1 name}} | 7 error_response {1 error_code, 2 error_message}.

internal import Basics
internal import DocumentModel
internal import FirestoreSchema
internal import Transport

/// The reflection of one loop: knows the calls that are open, so that they do not hold up a drain. Confined to the loop.
final class ReflectionService {
    private let counters: ServiceCounters
    private var open: [Call: ReflectionStream] = [:]
    private var isServing = true

    init(counters: ServiceCounters) {
        self.counters = counters
    }

    /// Takes a call over.
    func begin(_ call: Call, _ request: RawSpan) {
        let stream = ReflectionStream(call, of: self)
        open[call] = stream
        call.context = stream
        stream.take(request)
        if !isServing { stream.stopServing() }
        call.stream(stream)
    }

    /// The server drains: calls end when what they have asked is answered.
    func stopServing() {
        isServing = false
        for stream in open.values { stream.stopServing() }
    }

    /// - Parameter code: nil if the client gave up.
    fileprivate func ended(_ call: Call, _ code: StatusCode?) {
        open[call] = nil
        if let code { counters.callEnded(.serverReflectionInfo, code) }
    }
}

/// One call of ServerReflectionInfo: its questions in the order they came, answered as fast as the client reads.
///
/// A question of a few bytes may be answered with a whole file, so answers are made one at a time, and a client that asks
/// faster than it reads is asked to stop.
final class ReflectionStream: ResponseSource {
    /// Questions that may wait before the client is asked to stop sending.
    private static let waitingMax = 64

    private let call: Call
    private unowned let service: ReflectionService
    private var waiting: [[UInt8]] = []
    private var isHeld = false
    private var clientEnded = false
    private var isServing = true

    fileprivate init(_ call: Call, of service: ReflectionService) {
        self.call = call
        self.service = service
    }

    func take(_ request: RawSpan) {
        waiting.append([UInt8](copying: request))
        if waiting.count > Self.waitingMax, !isHeld {
            isHeld = true
            call.holdMessages()
        }
        call.resume()
    }

    func halfClosed() {
        clientEnded = true
        call.resume()
    }

    fileprivate func stopServing() {
        isServing = false
        call.resume()
    }

    // MARK: ResponseSource

    func next(into output: inout WireWriter) -> SourceStep {
        guard !waiting.isEmpty else {
            if clientEnded { return end(.ok, .finished) }
            return isServing ? .waiting : end(.unavailable, .failed(.unavailable, "the server is draining"))
        }
        let request = waiting.removeFirst()
        if isHeld, waiting.count <= Self.waitingMax / 2 {
            isHeld = false
            call.releaseMessages()
        }
        do {
            try answer(request, into: &output)
            return .message
        } catch {
            return end(.invalidArgument, .failed(.invalidArgument, "a reflection request is malformed"))
        }
    }

    private func end(_ code: StatusCode, _ step: SourceStep) -> SourceStep {
        service.ended(call, code)
        return step
    }

    func cancelled() {
        waiting = []
        service.ended(call, nil)
    }

    // MARK: Answers

    private enum Question {
        case none
        case file(name: String)
        case symbol(String)
        case anExtension
        case extensions(of: String)
        case services
    }

    private func answer(_ request: [UInt8], into output: inout WireWriter) throws {
        let (host, question) = try Self.read(request.byteSpan)
        output.writeIfSet(1, string: host)
        output.appendField(2, bytes: request)
        switch question {
        case .services: Self.appendServices(to: &output)
        case .file(let name):
            guard let file = Catalogue.shared.filesByName[name] else {
                return Self.appendError(.notFound, "unknown file \(name)", to: &output)
            }
            Self.append(file, to: &output)
        case .symbol(let name):
            guard let file = Catalogue.shared.filesBySymbol[name] else {
                return Self.appendError(.notFound, "unknown symbol \(name)", to: &output)
            }
            Self.append(file, to: &output)
        // proto3 has no extensions.
        case .anExtension: Self.appendError(.notFound, "there are no extensions", to: &output)
        case .extensions(let type):
            guard Catalogue.shared.filesBySymbol[type] != nil else {
                return Self.appendError(.notFound, "unknown type \(type)", to: &output)
            }
            output.withLengthPrefix(field: 5) { $0.appendField(1, string: type) }
        case .none: Self.appendError(.unimplemented, "this question is not answered here", to: &output)
        }
    }

    private static func read(_ request: RawSpan) throws -> (host: String, Question) {
        var host = ""
        var question = Question.none
        var reader = WireReader(request)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: host = try reader.string(tag)
            case 3: question = .file(name: try reader.string(tag))
            case 4: question = .symbol(try reader.string(tag))
            case 5:
                try reader.skip(tag)
                question = .anExtension
            case 6: question = .extensions(of: try reader.string(tag))
            case 7:
                try reader.skip(tag)
                question = .services
            default: try reader.skip(tag)
            }
        }
        return (host, question)
    }

    private static func appendServices(to output: inout WireWriter) {
        output.withLengthPrefix(field: 6) { list in
            for name in Catalogue.shared.services {
                list.withLengthPrefix(field: 1) { $0.appendField(1, string: name) }
            }
        }
    }

    /// The file and all that it imports, so that one answer is enough.
    private static func append(_ file: FileDescriptor, to output: inout WireWriter) {
        output.withLengthPrefix(field: 4) { list in
            for file in Catalogue.shared.closure(of: file) { list.appendField(1, bytes: file.bytes) }
        }
    }

    private static func appendError(_ code: StatusCode, _ text: String, to output: inout WireWriter) {
        output.withLengthPrefix(field: 7) { error in
            error.appendField(1, varint: UInt64(code.rawValue))
            error.appendField(2, string: text)
        }
    }
}

/// The descriptors, by the names that reflection is asked for.
private struct Catalogue: Sendable {
    static let shared = Catalogue()

    private(set) var filesByName: [String: FileDescriptor] = [:]
    private(set) var filesBySymbol: [String: FileDescriptor] = [:]
    private(set) var services: [String] = []

    private init() {
        for file in DescriptorSet.files {
            filesByName[file.name] = file
            for symbol in file.symbols { filesBySymbol[symbol] = file }
            services += file.services.map(\.fullName)
        }
        services.sort()
    }

    /// The file and the files it imports, directly or not, each once.
    func closure(of file: FileDescriptor) -> [FileDescriptor] {
        var found = [file]
        var index = 0
        while index < found.count {
            for name in found[index].dependencies where !found.contains(where: { $0.name == name }) {
                if let imported = filesByName[name] { found.append(imported) }
            }
            index += 1
        }
        return found
    }
}
