// What listeners of documents and of queries have in common.

public import Foundation

/// A listener that can be ended.
public protocol ListenerRegistration: AnyObject, Sendable {
    /// Ends the listener: no callback starts after this returns. Calling it again does nothing.
    func remove()
}

/// How a listener is to work; each method returns a changed copy.
public final class SnapshotListenOptions: NSObject, @unchecked Sendable {
    // Unchecked: `NSObject` hides it; the properties are constants.

    /// The source of the listener.
    public let source: ListenSource
    /// Whether changes of metadata alone are reported.
    public let includeMetadataChanges: Bool

    public override convenience init() { self.init(source: .default, includeMetadataChanges: false) }

    private init(source: ListenSource, includeMetadataChanges: Bool) {
        self.source = source
        self.includeMetadataChanges = includeMetadataChanges
    }

    /// Returns a copy with another choice about changes of metadata only.
    @discardableResult
    public func withIncludeMetadataChanges(_ includeMetadataChanges: Bool) -> SnapshotListenOptions {
        SnapshotListenOptions(source: source, includeMetadataChanges: includeMetadataChanges)
    }

    /// Returns a copy with another source.
    @discardableResult
    public func withSource(_ source: ListenSource) -> SnapshotListenOptions {
        SnapshotListenOptions(source: source, includeMetadataChanges: includeMetadataChanges)
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? SnapshotListenOptions else { return false }
        return source == other.source && includeMetadataChanges == other.includeMetadataChanges
    }

    public override var hash: Int { Int(source.rawValue) * 2 + (includeMetadataChanges ? 1 : 0) }
}
