// grpc.reflection.v1.ServerReflection, and v1alpha, which has the same messages: what this server offers, for grpcurl
// and its like.

internal import Basics
internal import Calls
internal import DocumentModel
internal import FirestoreJSON
internal import FirestoreMessages
internal import FirestoreService

/// The reflection of one loop. Confined to it.
final class ReflectionService {
    private let counters: ServiceCounters
    private let streams: LongLivedStreams

    init(counters: ServiceCounters, streams: LongLivedStreams) {
        self.counters = counters
        self.streams = streams
    }

    /// Begins a call with its first question.
    func begin(_ call: Call, _ request: RawSpan) {
        let stream = ReflectionStream(call, of: self)
        stream.received(request)
        call.open(stream)
        streams.insert(stream)
    }

    /// - Parameter code: nil if the client gave up.
    fileprivate func ended(_ stream: ReflectionStream, _ code: StatusCode?) {
        streams.remove(stream)
        if let code { counters.callEnded(Method.serverReflectionInfo.rpc, code) }
    }
}

/// One call of ServerReflectionInfo: its questions in the order they came, answered as fast as the client reads.
///
/// The reply to a request of a few bytes can be a whole file, so replies are made one at a time, and a client that
/// asks faster than it reads is paused.
private final class ReflectionStream: CallStream, LongLivedStream {
    /// Questions that may wait before the client is asked to stop sending.
    private static let waitingMax = 64

    private let call: Call
    private unowned let service: ReflectionService
    /// A slice: the first one is taken out without a move of the others, of which a client may send many thousands.
    private var waiting: ArraySlice<[UInt8]> = []
    private var isPaused = false
    private var clientEnded = false
    private var isServing = true

    fileprivate init(_ call: Call, of service: ReflectionService) {
        self.call = call
        self.service = service
    }

    func received(_ request: RawSpan) {
        waiting.append([UInt8](copying: request))
        if waiting.count > Self.waitingMax, !isPaused {
            isPaused = true
            call.pauseMessages()
        }
        call.resume()
    }

    func halfClosed() {
        clientEnded = true
        call.resume()
    }

    func stopServing() {
        isServing = false
        call.resume()
    }

    // MARK: ResponseSource

    func next(into output: inout ByteBuffer) -> SourceStep {
        guard let request = waiting.popFirst() else {
            if clientEnded { return end(.ok, .finished) }
            return isServing ? .waiting : end(.unavailable, .failed(.unavailable, "the server is draining"))
        }
        if isPaused, waiting.count <= Self.waitingMax / 2 {
            isPaused = false
            call.resumeMessages()
        }
        do {
            try answer(request, into: &output)
            return .message
        } catch {
            return end(.invalidArgument, .failed(.invalidArgument, "a reflection request is malformed"))
        }
    }

    private func end(_ code: StatusCode, _ step: SourceStep) -> SourceStep {
        service.ended(self, code)
        return step
    }

    func cancelled() {
        waiting = []
        service.ended(self, nil)
    }

    // MARK: Replies

    private func answer(_ request: [UInt8], into output: inout ByteBuffer) throws {
        let catalogue = call.isLocal ? ReflectionCatalogue.local : ReflectionCatalogue.gateway
        let message = try ServerReflectionRequest(wire: request.byteSpan)
        ServerReflectionResponseWriter.append(host: message.host, original: request, to: &output)
        switch message.question {
        case .services: ServerReflectionResponseWriter.append(services: catalogue.services, to: &output)
        case .file(let name):
            guard let file = catalogue.filesByName[name] else {
                return ServerReflectionResponseWriter.append(.notFound, "unknown file \(name)", to: &output)
            }
            Self.append(file, of: catalogue, to: &output)
        case .symbol(let name):
            guard let file = catalogue.filesBySymbol[name] else {
                return ServerReflectionResponseWriter.append(.notFound, "unknown symbol \(name)", to: &output)
            }
            Self.append(file, of: catalogue, to: &output)
        // proto3 has no extensions.
        case .anExtension: ServerReflectionResponseWriter.append(.notFound, "there are no extensions", to: &output)
        case .extensions(let type):
            guard catalogue.filesBySymbol[type] != nil else {
                return ServerReflectionResponseWriter.append(.notFound, "unknown type \(type)", to: &output)
            }
            ServerReflectionResponseWriter.append(noExtensionsOf: type, to: &output)
        case .none:
            ServerReflectionResponseWriter.append(
                .unimplemented, "this kind of reflection request is not supported", to: &output)
        }
    }

    /// The file and all that it imports, so that one answer is enough.
    private static func append(_ file: FileDescriptor, of catalogue: ReflectionCatalogue, to output: inout ByteBuffer) {
        ServerReflectionResponseWriter.append(fileSets: catalogue.closure(of: file).map(\.set), to: &output)
    }
}

/// The descriptors, by the names that reflection is asked for.
private struct ReflectionCatalogue: Sendable {
    /// What the TCP port serves.
    static let gateway = ReflectionCatalogue(isLocal: false)
    /// What the socket in the data directory serves.
    static let local = ReflectionCatalogue(isLocal: true)

    private(set) var filesByName: [String: FileDescriptor] = [:]
    private(set) var filesBySymbol: [String: FileDescriptor] = [:]
    private(set) var services: [String] = []

    private init(isLocal: Bool) {
        // Administration is not offered to clients.
        let hidden = isLocal ? [] : ["hearth/", "google/firestore/admin/", "google/longrunning/"]
        for file in DescriptorSet.files where !hidden.contains(where: file.name.hasPrefix) {
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
