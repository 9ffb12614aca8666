// The libraries that analyse texts: ICU and Snowball. They are loaded when a text index is first used.

package import Basics
internal import CText
internal import Glibc

/// Whether texts can be analysed, and by which versions of the libraries.
package enum TextLibraries: Sendable, Equatable {
    /// Ready, with a text that differs when the words of some text may differ.
    case ready(version: String)
    /// Not there: what is missing.
    case missing(String)

    /// The libraries of this machine. The first use loads them, which takes some milliseconds.
    package static var system: TextLibraries { loaded }

    /// Changes with every change of this program that gives other words.
    private static let programVersion = 1

    private static let loaded: TextLibraries = {
        if let missing = unsafe hearth_text_load() { return unsafe .missing(String(cString: missing)) }
        let icu = unsafe String(cString: hearth_text_icu_version())
        guard let snowball = fingerprint(ofFile: unsafe String(cString: hearth_text_snowball_path())) else {
            return .missing("the file of libstemmer, which cannot be read")
        }
        return .ready(version: "\(programVersion) icu \(icu) snowball \(snowball)")
    }()

    /// The version, if the libraries are there.
    package var version: String? {
        if case .ready(let version) = self { version } else { nil }
    }

    /// - Throws: `FAILED_PRECONDITION` with what is missing.
    package func require() throws(RequestError) {
        guard case .missing(let what) = self else { return }
        throw RequestError(
            .failedPrecondition,
            "Indexes for searches need libraries that this server does not have: \(what). "
                + "Install the packages of ICU and Snowball, and start the server again.")
    }

    /// A hash of the bytes of a file: Snowball does not tell its version.
    private static func fingerprint(ofFile path: String) -> String? {
        let file = unsafe fopen(path, "rb")
        guard let file = unsafe file else { return nil }
        defer { unsafe fclose(file) }
        // FNV-1a.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        var block = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = unsafe fread(&block, 1, block.count, file)
            for byte in block[..<count] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            if count < block.count { break }
        }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
