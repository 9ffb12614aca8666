// Where authorisation plugs in: one question before every method touches the store.

package import Basics
import DocumentModel
package import FirestoreMessages

/// Decides by method and resource what callers may do; without a policy everything is allowed. There are no rules yet.
///
/// Asked on the loop's thread, so it must not block.
package protocol AccessPolicy: Sendable {
    /// Checks one call by its method and the resource it is about: a document, a parent, or a database.
    ///
    /// - Throws: `PERMISSION_DENIED` or `UNAUTHENTICATED`, which become the call's answer.
    func check(_ method: Method, on resource: RawSpan, by principal: Principal) throws(RequestError)

    /// Checks the emulator's deletion of a whole database, for which there is no method.
    ///
    /// - Throws: as above. The default permits it to no caller.
    func checkReset(of database: RawSpan, by principal: Principal) throws(RequestError)
}

extension AccessPolicy {
    package func checkReset(of database: RawSpan, by principal: Principal) throws(RequestError) {
        throw RequestError(.permissionDenied, "Deleting a whole database is not permitted.")
    }
}
