package import Basics
package import DocumentModel
package import Storage

/// Decides whether targets of a stream may be sent. Confined to the thread of the hub.
///
/// The documents that a verdict rests on may be missing: the target is judged again when they are created.
package protocol TargetJudge: AnyObject {
    /// Judges a query.
    ///
    /// - Parameters:
    ///   - parent: the full resource name that the query is below.
    ///   - version: the version to read, in microseconds.
    ///   - cold: what the judge does if it must read what is not in memory.
    /// - Returns: paths below `documents` of the documents that the verdict rests on.
    /// - Throws: the error that the target is removed with, `PERMISSION_DENIED`; `pending`.
    func judge(
        query: StructuredQuery, parent: RawSpan, at version: UInt64, _ cold: ColdRead
    ) throws(RequestError) -> [[UInt8]]

    /// Judges one document of a documents target; it may be missing.
    ///
    /// - Parameters:
    ///   - path: the document's path below `documents`.
    ///   - version: the version to read, in microseconds.
    ///   - cold: what the judge does if it must read what is not in memory.
    /// - Returns: paths below `documents` of the documents that the verdict rests on; `path` is one of them if the
    ///   content of the document matters.
    /// - Throws: the error that the target is removed with, `PERMISSION_DENIED`; `pending`.
    func judge(document path: RawSpan, at version: UInt64, _ cold: ColdRead) throws(RequestError) -> [[UInt8]]

    /// Decides whether the stream may have one more target. It has the target until ``closeTarget()``.
    ///
    /// - Throws: the error that the target is removed with, `RESOURCE_EXHAUSTED`.
    func openTarget() throws(RequestError)

    /// The stream has a target less.
    func closeTarget()
}

/// Streams without a limit of their client.
extension TargetJudge {
    package func openTarget() {}
    package func closeTarget() {}
}
