import Basics
import NativeProtocol

/// An answer of a client's token provider.
struct ClientToken: Equatable, Sendable {
    let credential: Credential
    /// The number of the answer, from 1.
    let generation: UInt64
    /// Whose token it is, as far as it says; else empty.
    var user = ""
}

/// What became of a question for a token.
enum TokenAnswer: Equatable, Sendable {
    case token(ClientToken)
    /// The provider has failed, or has not answered in time.
    case failure(RequestError)
    /// There was a new token only a moment ago: the provider is not asked.
    case notAsked
}
