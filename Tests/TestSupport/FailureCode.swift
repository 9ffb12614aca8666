package import Basics

/// The status that `body` fails with; nil if it succeeds.
package func failureCode(_ body: () throws(RequestError) -> Void) -> StatusCode? {
    do throws(RequestError) {
        try body()
        return nil
    } catch {
        return error.code
    }
}
