// Names, addresses and bound sockets, with plain system calls.

import CUV
import Glibc

/// Why a server cannot listen, or a client cannot connect.
package struct SocketError: Error, CustomStringConvertible, Sendable {
    /// What was attempted, for example `listen on 127.0.0.1:80`.
    package let attempt: String
    /// The system's `errno`, or a code of `getaddrinfo`.
    package let code: Int32
    package let reason: String

    package init(attempt: String, code: Int32, reason: String) {
        self.attempt = attempt
        self.code = code
        self.reason = reason
    }

    package var description: String { "cannot \(attempt): \(reason)" }

    /// Whether nothing listens at the path of a unix socket: the file is missing, or left from a process that has
    /// ended.
    package var isNoListener: Bool { [ENOENT, ENOTDIR, ECONNREFUSED].contains(code) }
}

package enum SocketAddress {
    /// `host:port`, IPv6 in brackets; `local` for the peer on a unix socket.
    static func describe(_ address: UnsafePointer<sockaddr>) -> String {
        if unsafe Int32(address.pointee.sa_family) == AF_UNIX { return "local" }
        var text = [CChar](repeating: 0, count: 64)
        if unsafe Int32(address.pointee.sa_family) == AF_INET6 {
            return unsafe address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
                unsafe uv_ip6_name(address, &text, text.count)
                return "[\(name(text))]:\(UInt16(bigEndian: unsafe address.pointee.sin6_port))"
            }
        }
        return unsafe address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { address in
            unsafe uv_ip4_name(address, &text, text.count)
            return "\(name(text)):\(UInt16(bigEndian: unsafe address.pointee.sin_port))"
        }
    }

    /// Whether an address is 127.0.0.0/8, also within IPv6, or ::1.
    static func isLoopback(_ address: UnsafePointer<sockaddr>) -> Bool {
        switch unsafe Int32(address.pointee.sa_family) {
        case AF_INET:
            return unsafe address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { address in
                UInt32(bigEndian: unsafe address.pointee.sin_addr.s_addr) >> 24 == 127
            }
        case AF_INET6:
            return unsafe address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
                unsafe withUnsafeBytes(of: address.pointee.sin6_addr) { unsafe isLoopback(ipv6: Array($0)) }
            }
        default: return false
        }
    }

    /// - Parameter bytes: the 16 bytes of an IPv6 address.
    static func isLoopback(ipv6 bytes: [UInt8]) -> Bool {
        let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127]
        return bytes.starts(with: mapped) || bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
    }

    private static func name(_ text: [CChar]) -> String {
        String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The addresses of a host, IPv4 first, because that is what "localhost" is expected to mean. Blocks for a name
    /// server.
    ///
    /// - Parameter forListening: whether an empty host stands for every local address.
    package static func resolve(
        _ host: String, port: UInt16, forListening: Bool = true
    ) throws(SocketError) -> [ResolvedAddress] {
        var hints = unsafe addrinfo()
        unsafe hints.ai_family = AF_UNSPEC
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = (forListening ? AI_PASSIVE : 0) | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, String(port), &hints, &list)
        defer { if let list = unsafe list { unsafe freeaddrinfo(list) } }
        guard code == 0 else {
            throw SocketError(
                attempt: "find the host \(host)", code: code, reason: unsafe String(cString: gai_strerror(code)))
        }
        return unsafe addresses(in: list)
    }

    /// Copies a resolver's list, IPv4 first.
    static func addresses(in list: UnsafeMutablePointer<addrinfo>?) -> [ResolvedAddress] {
        var found: [ResolvedAddress] = []
        var next = unsafe list
        while let entry = unsafe next {
            unsafe found.append(ResolvedAddress(entry.pointee))
            unsafe next = entry.pointee.ai_next
        }
        return found.filter { $0.family == AF_INET } + found.filter { $0.family != AF_INET }
    }

    /// A socket that is bound and listens, and the port it got.
    package static func listen(
        on address: ResolvedAddress, port: UInt16, sharesPort: Bool, backlog: Int32
    ) throws(SocketError) -> (descriptor: Int32, port: UInt16) {
        let address = address.with(port: port)
        let descriptor = socket(address.family, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw failure(address) }
        var one: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, size)
        if sharesPort { unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &one, size) }
        let bound = unsafe address.withSockaddr { unsafe bind(descriptor, $0, $1) } == 0
        guard bound, Glibc.listen(descriptor, backlog) == 0 else {
            let error = failure(address)
            closeDescriptor(descriptor)
            throw error
        }
        return (descriptor, boundPort(descriptor))
    }

    private static func failure(_ address: ResolvedAddress) -> SocketError {
        let code = errno
        return SocketError(
            attempt: "listen on \(address.description)", code: code, reason: unsafe String(cString: strerror(code)))
    }

    private static func boundPort(_ descriptor: Int32) -> UInt16 {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return unsafe withUnsafeMutablePointer(to: &storage) { storage in
            // The port is at the same offset in both families.
            unsafe storage.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = unsafe getsockname(descriptor, $0, &length)
            }
            return unsafe storage.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                UInt16(bigEndian: unsafe $0.pointee.sin_port)
            }
        }
    }
}

/// One address of a host, copied out of the resolver's list.
package struct ResolvedAddress: Sendable, CustomStringConvertible {
    private var storage = sockaddr_storage()
    private let length: socklen_t

    init(_ entry: addrinfo) {
        unsafe length = entry.ai_addrlen
        unsafe withUnsafeMutableBytes(of: &storage) {
            unsafe $0.copyMemory(from: UnsafeRawBufferPointer(start: entry.ai_addr, count: Int(entry.ai_addrlen)))
        }
    }

    /// The address that an IPv4 or IPv6 number stands for; nil for a host name. Asks no name server.
    init?(numericHost host: String, port: UInt16) {
        var ipv4 = sockaddr_in()
        var ipv6 = sockaddr_in6()
        if unsafe uv_ip4_addr(host, Int32(port), &ipv4) == 0 {
            length = socklen_t(MemoryLayout<sockaddr_in>.size)
            unsafe withUnsafeMutableBytes(of: &storage) { unsafe $0.storeBytes(of: ipv4, as: sockaddr_in.self) }
        } else if unsafe uv_ip6_addr(host, Int32(port), &ipv6) == 0 {
            length = socklen_t(MemoryLayout<sockaddr_in6>.size)
            unsafe withUnsafeMutableBytes(of: &storage) { unsafe $0.storeBytes(of: ipv6, as: sockaddr_in6.self) }
        } else {
            return nil
        }
    }

    var family: Int32 { Int32(storage.ss_family) }

    func with(port: UInt16) -> ResolvedAddress {
        var copy = self
        unsafe withUnsafeMutablePointer(to: &copy.storage) {
            // The port is at the same offset in both families.
            unsafe $0.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                unsafe $0.pointee.sin_port = port.bigEndian
            }
        }
        return copy
    }

    func withSockaddr<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        unsafe withUnsafePointer(to: storage) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, length) }
        }
    }

    package var description: String { unsafe withSockaddr { address, _ in unsafe SocketAddress.describe(address) } }
}
