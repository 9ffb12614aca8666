// A blocking TCP socket to a server on this machine, or in a network namespace of it.

import Glibc

package enum LoopbackSocket {
    /// Connects to a port. Connecting and receiving fail after so many seconds: a server that is silent is a failure,
    /// not a hang.
    /// - Returns: the descriptor, which the caller closes; nil, with `errno`, if there is no connection.
    package static func connect(
        port: UInt16, address host: String = TestHost.local.address, patienceSeconds: Int = waitSecondsMax
    ) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, host, &address.sin_addr)
        var patience = timeval(tv_sec: patienceSeconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
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

    /// Sends all bytes.
    /// - Returns: false when the peer has closed the connection, or the time for sending is over.
    package static func send(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return false }
            sent += count
        }
        return true
    }

    /// A port for a server of a test, which can end and come back on it.
    ///
    /// Until this process ends, the system gives the port to no other program that asks for any port, and to no
    /// outgoing connection: a socket is bound to it that does not listen. A server that sets `SO_REUSEADDR`, as most
    /// do, can listen on it.
    package static func reservePort() throws(ReservationError) -> Int { try bind().port }

    /// A port to which connections can be made, and on which nobody ever says anything, until this process ends.
    package static func silentPort() throws(ReservationError) -> Int { try listen().port }

    /// A socket that connections can be made to.
    package static func listen() throws(ReservationError) -> (descriptor: Int32, port: Int) {
        let (descriptor, port) = try bind()
        guard Glibc.listen(descriptor, 16) == 0 else { throw ReservationError(code: errno) }
        return (descriptor, port)
    }

    private static func bind() throws(ReservationError) -> (descriptor: Int32, port: Int) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var one: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        inet_pton(AF_INET, TestHost.local.address, &address.sin_addr)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                Glibc.bind(descriptor, pointer, length) == 0 ? getsockname(descriptor, pointer, &length) : -1
            }
        }
        guard result == 0 else {
            let code = errno
            close(descriptor)
            throw ReservationError(code: code)
        }
        return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
    }

    /// No port could be reserved.
    package struct ReservationError: Error {
        /// An `errno`.
        package let code: Int32
    }
}
