// A listener that sends the same bytes to each client: a server of another protocol, or a silent one.

import Foundation
import Glibc
import Synchronization

/// Listens on 127.0.0.1 until it is let go of.
final class RawServer: Sendable {
    enum Behaviour: Sendable {
        /// Accepts and says nothing.
        case silent
        /// Accepts and closes.
        case closes
        /// Waits for the client's first bytes, then says these.
        case says([UInt8])
    }

    let port: UInt16
    var address: String { "127.0.0.1:\(port)" }
    private let listener: Int32
    private let accepted = Mutex<[Int32]>([])

    init(_ behaviour: Behaviour) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 16) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        precondition(bound, "cannot listen: \(errno)")
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [weak self] in
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { return }
                Self.serve(descriptor, behaviour)
                guard let self else { return _ = close(descriptor) }
                accepted.withLock { $0.append(descriptor) }
            }
        }
    }

    private static func serve(_ descriptor: Int32, _ behaviour: Behaviour) {
        switch behaviour {
        case .silent: break
        case .closes: shutdown(descriptor, Int32(SHUT_RDWR))
        case .says(let bytes):
            var buffer = [UInt8](repeating: 0, count: 1024)
            _ = recv(descriptor, &buffer, buffer.count, 0)
            _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        for descriptor in accepted.withLock({ $0 }) { close(descriptor) }
    }
}
