// One fetch, on the thread that calls it.

internal import CCurl
internal import Identity

/// A transfer of libcurl and what it has received. Not thread-safe.
@safe
final class Transfer {
    private let handle: UnsafeMutableRawPointer
    private let limits: FetchLimits
    private var body: [UInt8] = []
    private var isTooLong = false

    init(_ url: KeyURL, _ limits: FetchLimits, _ authorities: String?) throws(FetchFailure) {
        guard let handle = unsafe hearth_curl_make() else { throw FetchFailure("libcurl has no memory") }
        unsafe self.handle = handle
        self.limits = limits
        try check(unsafe hearth_curl_harden(handle, url.isPlain ? "http" : "https", limits.redirectsMax))
        try check(unsafe hearth_curl_set_url(handle, url.text))
        // A proxy of the environment does not reach this machine.
        if url.isPlain { try check(unsafe hearth_curl_ignore_proxies(handle)) }
        if let authorities { try check(unsafe hearth_curl_set_authorities(handle, authorities)) }
        try check(unsafe hearth_curl_set_times(handle, limits.connectMilliseconds, limits.totalMilliseconds))
    }

    deinit { unsafe hearth_curl_free(handle) }

    private func check(_ code: Int32) throws(FetchFailure) {
        if code == 0 { return }
        if isTooLong { throw FetchFailure("the response has more than \(limits.bytesMax) bytes") }
        throw FetchFailure(unsafe String(cString: hearth_curl_text(code)))
    }

    /// Performs the transfer.
    ///
    /// - Throws: unless the last response has the status 200 and has arrived whole.
    func response() throws(FetchFailure) -> KeyResponse {
        // The object outlives the call, which alone uses the pointer.
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        try check(
            unsafe hearth_curl_set_output(
                handle,
                { bytes, size, count, context in
                    guard let bytes = unsafe bytes, let context = unsafe context else { return 0 }
                    let received = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
                    return unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue().take(received)
                }, context))
        try check(unsafe hearth_curl_perform(handle))
        let status = unsafe hearth_curl_status(handle)
        guard status == 200 else { throw FetchFailure("the status is \(status)") }
        return KeyResponse(body: body, cacheControl: cacheControl)
    }

    /// - Returns: the number of bytes taken: none beyond the limit, which ends the transfer.
    private func take(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard bytes.count <= limits.bytesMax - body.count else {
            isTooLong = true
            return 0
        }
        unsafe body.append(contentsOf: bytes)
        return bytes.count
    }

    /// The fields `Cache-Control` of the last response, joined; nil without one.
    private var cacheControl: String? {
        var values: [String] = []
        while let value = unsafe hearth_curl_field(handle, "Cache-Control", values.count) {
            unsafe values.append(String(cString: value))
        }
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}
