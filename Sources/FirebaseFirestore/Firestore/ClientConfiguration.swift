// What the settings of an instance mean for its client.

import Basics
import FirebaseCore
import HearthClient

#if InProcess
    import InProcess
#endif

extension HearthClient.Configuration {
    /// - Throws: `.invalidArgument` if the host or the file of authorities cannot be read.
    init(_ settings: FirestoreSettings) throws(RequestError) {
        try self.init(address: settings.host)
        if settings.usesTLS, store == nil { try useTLS(authorities: settings.certificateAuthorities) }
        tokenProvider = settings.tokenProvider
        if exposesToken {
            FirebaseLog.write(.warning, "Tokens are sent to \(address) in plain text: set isSSLEnabled to true.")
        }
        log = FirebaseLog.client
        outageNoticeAfter = .seconds(3)
        #if InProcess
            openStore = SharedStore.use
            let more = " Without a server, HEARTH_DATA names a directory to open in this process."
        #else
            let more = ""
        #endif
        remedy = { _ in
            "Start a Hearth server at this address, or set another one: settings.host, HEARTH_ADDRESS or "
                + "FIRESTORE_EMULATOR_HOST.\(more)"
        }
    }
}

extension FirebaseLog {
    /// The log of a client.
    fileprivate static let client: ClientLog = { level, message in
        switch level {
        case .debug: write(.debug, message())
        case .warning: write(.warning, message())
        case .error: write(.error, message())
        }
    }
}
