// A blocking TCP socket to a server on this machine.

import Glibc

package enum LoopbackSocket {
    /// Connects to a port of 127.0.0.1. Receiving fails after a minute: a server that is silent is a failure, not a
    /// hang.
    /// - Returns: the descriptor, which the caller closes; nil, with `errno`, if there is no connection.
    package static func connect(port: UInt16) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var patience = timeval(tv_sec: waitSecondsMax, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if result == 0 { return descriptor }
        let code = errno
        close(descriptor)
        errno = code
        return nil
    }
}
