// The listeners of the SDK. This version cannot listen: every listener gets one `.unimplemented` error on the queue of
// the settings, and its registration can be removed. Code with listeners compiles and gets the error where it handles
// errors.

public import DocumentCoding
import DocumentModel
public import Foundation
import Synchronization

/// A listener that can be ended.
public protocol ListenerRegistration: AnyObject {
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

    public override var hash: Int { source.rawValue * 2 + (includeMetadataChanges ? 1 : 0) }
}

/// The registration of a listener that will report nothing but one error.
private final class RefusedListener: ListenerRegistration, Sendable {
    private let isRemoved = Mutex(false)

    init(on firestore: Firestore, report: @escaping @Sendable (NSError) -> Void) {
        firestore.callBack { [self] in
            guard !isRemoved.withLock({ $0 }) else { return }
            report(Self.error)
        }
    }

    func remove() { isRemoved.withLock { $0 = true } }

    static var error: NSError {
        .firestore(.unimplemented, "Snapshot listeners are not supported by this version of the library.")
    }
}

extension DocumentReference {
    /// Listens to the document. Not supported yet: the listener receives one `.unimplemented` error.
    @discardableResult
    public func addSnapshotListener(
        _ listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration {
        addSnapshotListener(options: SnapshotListenOptions(), listener: listener)
    }

    /// Listens to the document. Not supported yet: the listener receives one `.unimplemented` error.
    @discardableResult
    public func addSnapshotListener(
        includeMetadataChanges: Bool, listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration {
        addSnapshotListener(
            options: SnapshotListenOptions().withIncludeMetadataChanges(includeMetadataChanges), listener: listener)
    }

    /// Listens to the document. Not supported yet: the listener receives one `.unimplemented` error.
    @discardableResult
    public func addSnapshotListener(
        options: SnapshotListenOptions, listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration {
        firestore.checkUsable()
        let box = UncheckedBox(listener)
        return RefusedListener(on: firestore) { box.value(nil, $0) }
    }
}

extension Query {
    /// Listens to the query. Not supported yet: the listener receives one `.unimplemented` error.
    @discardableResult
    public func addSnapshotListener(
        _ listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration {
        addSnapshotListener(options: SnapshotListenOptions(), listener: listener)
    }

    /// Listens to the query. Not supported yet: the listener receives one `.unimplemented` error.
    @discardableResult
    public func addSnapshotListener(
        includeMetadataChanges: Bool, listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration {
        addSnapshotListener(
            options: SnapshotListenOptions().withIncludeMetadataChanges(includeMetadataChanges), listener: listener)
    }

    /// Listens to the query. Not supported yet: the listener receives one `.unimplemented` error.
    @discardableResult
    public func addSnapshotListener(
        options: SnapshotListenOptions, listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration {
        firestore.checkUsable()
        let box = UncheckedBox(listener)
        return RefusedListener(on: firestore) { box.value(nil, $0) }
    }
}
