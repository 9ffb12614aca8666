// Open or closed: one decision from the settings, and what it means for each caller.

/// The settings that decide whether a server is open.
package struct SecuritySettings: Equatable, Sendable {
    /// Whether every address that is listened on is of this machine alone.
    package var isLoopback = true
    /// `--rules`, or rules in the data directory.
    package var hasRules = false
    /// Any `--token-*`.
    package var hasTokens = false
    /// `--principals`.
    package var hasPrincipals = false
    /// `--tls-cert`.
    package var hasCertificate = false
    /// `--allow-host`.
    package var hasAllowedHosts = false
    /// `--insecure`.
    package var isInsecure = false
    /// `--emulator`.
    package var isEmulator = false

    package init() {}

    var hasAny: Bool { hasRules || hasTokens || hasPrincipals || hasCertificate || hasAllowedHosts }
}

/// Why a server does not start with its settings.
package enum SettingsFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// Other machines would reach a server without any security setting.
    case openToOthers
    /// The emulator's mode, for other machines.
    case emulatorForOthers

    package var description: String {
        switch self {
        case .openToOthers:
            """
            other machines could read and write everything: give --rules, --token-issuer, --principals or \
            --tls-cert, or listen on 127.0.0.1, or give --insecure
            """
        case .emulatorForOthers: "--emulator accepts unsigned tokens, so it serves 127.0.0.1 and ::1 alone"
        }
    }
}

/// Who is trusted without a credential.
package enum SecurityMode: String, Sendable {
    /// Every program of this machine may do everything.
    case open
    /// Everyone who reaches the port may do everything: `--insecure`.
    case insecure
    /// The rules decide as in the emulator: `owner` is an admin, and unsigned tokens are users.
    case emulator
    /// Nobody is trusted without a credential that is verified.
    case closed

    /// The mode that settings ask for.
    package static func of(_ settings: SecuritySettings) throws(SettingsFault) -> SecurityMode {
        if settings.isEmulator, !settings.isLoopback { throw .emulatorForOthers }
        if settings.isInsecure { return .insecure }
        if settings.isEmulator { return .emulator }
        if settings.hasAny { return .closed }
        if settings.isLoopback { return .open }
        throw .openToOthers
    }

    /// The mode after rules have come over the emulator's route; nil if the route is refused.
    package var withRulesOfEmulator: SecurityMode? {
        switch self {
        case .open, .emulator: .emulator
        case .insecure, .closed: nil
        }
    }

    /// The mode after rules have been put into the data directory.
    package var withKeptRules: SecurityMode { self == .open ? .closed : self }

    /// Whether `owner` and unsigned tokens are credentials.
    package var acceptsUnsigned: Bool { self == .emulator }

    /// Whether callers need no credential for anything.
    package var trustsEveryone: Bool { self == .open || self == .insecure }
}
