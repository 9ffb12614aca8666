// The messages of `hearth.admin.v1` about users.

internal import CFirestoreProto

package struct RevokeUserRequest: TableMessage, Equatable, Sendable {
    /// The identifier of the user.
    package var uid: String

    package init(uid: String) { self.uid = uid }

    static let table = unsafe MessageTable(
        RevokeUserRequest(uid: ""), held__admin__revoke_user_request__init,
        hearth__admin__v1__revoke_user_request__init,
        [.text(\.uid, \.uid)])
}

/// What tokens of a user are refused.
package struct RevokeUserResponse: TableMessage, Equatable, Sendable {
    /// Those of sign-ins before this moment, in seconds since 1970.
    package var before: Int64
    /// Whether all servers of a cluster refuse them.
    package var isInCluster: Bool

    package init(before: Int64, isInCluster: Bool) {
        self.before = before
        self.isInCluster = isInCluster
    }

    static let table = unsafe MessageTable(
        RevokeUserResponse(before: 0, isInCluster: false), held__admin__revoke_user_response__init,
        hearth__admin__v1__revoke_user_response__init,
        [.number(\.before, \.before), .flag(\.isInCluster, \.in_cluster)])
}
