// The messages of `hearth.admin.v1` about users.

internal import CFirestoreProto

package struct RevokeUserRequest: TableMessage, Equatable, Sendable {
    /// The identifier of the user; empty for a replica.
    package var uid: String
    /// The users whom a replica refuses, as ``FollowResponse/revocations(_:)`` has them.
    package var revocations: [UInt8]

    package init(uid: String) { (self.uid, revocations) = (uid, []) }

    package init(revocations: [UInt8]) { (uid, self.revocations) = ("", revocations) }

    static let table = unsafe MessageTable(
        RevokeUserRequest(uid: ""), held__admin__revoke_user_request__init,
        hearth__admin__v1__revoke_user_request__init,
        [.text(\.uid, \.uid), .bytes(\.revocations, \.revocations)])
}

/// What tokens of a user are refused.
package struct RevokeUserResponse: TableMessage, Equatable, Sendable {
    /// Those of sign-ins before this moment, in seconds since 1970.
    package var before: Int64
    /// Whether all servers of a cluster refuse them.
    package var isInCluster: Bool
    /// The source of this replica, which refuses them too; empty if this is none.
    package var source: String

    package init(before: Int64, isInCluster: Bool, source: String) {
        self.before = before
        self.isInCluster = isInCluster
        self.source = source
    }

    static let table = unsafe MessageTable(
        RevokeUserResponse(before: 0, isInCluster: false, source: ""), held__admin__revoke_user_response__init,
        hearth__admin__v1__revoke_user_response__init,
        [.number(\.before, \.before), .flag(\.isInCluster, \.in_cluster), .text(\.source, \.source)])
}
