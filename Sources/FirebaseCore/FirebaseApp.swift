import DocumentCoding
public import Foundation
import Synchronization

/// A named configuration of a program. A Firestore instance belongs to an app and takes its project from it.
///
/// Most programs have one app, the default app. Apps are in one registry of the process until `delete(_:)`.
/// Thread-safe.
public final class FirebaseApp: NSObject, @unchecked Sendable {
    // Unchecked: `storedOptions` is a private copy that is never changed or lent; the rest is constant or locked.

    /// The name of the default app, as the Apple SDK spells it.
    package static let defaultName = "__FIRAPP_DEFAULT"

    /// The name the app was configured with; `__FIRAPP_DEFAULT` for the default app.
    public let name: String
    private let storedOptions: FirebaseOptions
    /// Whether the app was made because a product was used before `configure()`; such an app gives way to a configured
    /// one.
    private let isImplicit: Bool
    /// By what they end.
    private let deletionActions = Mutex<[String: @Sendable () async -> Void]>([:])

    private static let registry = Mutex<[String: FirebaseApp]>([:])

    private init(name: String, options: FirebaseOptions, isImplicit: Bool) {
        self.name = name
        self.storedOptions = options.copy() as! FirebaseOptions
        self.isImplicit = isImplicit
    }

    /// Has no effect: this library collects no data. True unless set, as in the Apple SDK.
    public var isDataCollectionDefaultEnabled: Bool {
        get { collectsData.load(ordering: .relaxed) }
        set { collectsData.store(newValue, ordering: .relaxed) }
    }
    private let collectsData = Atomic(true)

    /// A copy of the options of the app.
    public var options: FirebaseOptions { storedOptions.copy() as! FirebaseOptions }

    /// The project of the app, from its options or, where they name none, from the environment.
    package var projectID: String {
        if let named = storedOptions.projectID, !named.isEmpty { return named }
        return DefaultOptions.ofThisProcess.resolve().projectID!
    }

    /// Configures the default app with options from the environment (`HEARTH_PROJECT`, `GOOGLE_CLOUD_PROJECT`,
    /// `GCLOUD_PROJECT`) or from `GoogleService-Info.plist` in the main bundle or the working directory.
    ///
    /// Configuring the default app twice is a programming error.
    public static func configure() {
        configure(name: defaultName, options: DefaultOptions.ofThisProcess.resolve())
    }

    /// Configures the default app with the given options. Configuring it twice is a programming error.
    public static func configure(options: FirebaseOptions) {
        configure(name: defaultName, options: options)
    }

    /// Configures an app of the given name. An empty name or one in use is a programming error.
    public static func configure(name: String, options: FirebaseOptions) {
        if let violation = register(name: name, options: options) {
            programmingError(violation)
        }
    }

    /// Registers an app; returns the broken rule instead of trapping, so that the rule can be tested.
    package static func register(name: String, options: FirebaseOptions) -> String? {
        guard !name.isEmpty else { return "App name cannot be empty" }
        let app = FirebaseApp(name: name, options: options, isImplicit: false)
        return registry.withLock { apps in
            if let existing = apps[name], !existing.isImplicit {
                return name == defaultName
                    ? "Default app has already been configured." : "App named \(name) has already been configured."
            }
            apps[name] = app
            return nil
        }
    }

    /// The default app, or `nil` if none was configured.
    @discardableResult
    public static func app() -> FirebaseApp? { app(name: defaultName) }

    /// The app of the given name, or `nil` if there is none.
    @discardableResult
    public static func app(name: String) -> FirebaseApp? {
        registry.withLock { $0[name].flatMap { $0.isImplicit ? nil : $0 } }
    }

    /// All configured apps by name, or `nil` if there is none.
    public static var allApps: [String: FirebaseApp]? {
        let apps = registry.withLock { $0.filter { !$0.value.isImplicit } }
        return apps.isEmpty ? nil : apps
    }

    /// The default app; made from the environment if nobody configured it, because much sample code never does.
    package static func defaultOrImplicit() -> FirebaseApp {
        if let app = registry.withLock({ $0[defaultName] }) { return app }
        let implicit = FirebaseApp(
            name: defaultName, options: DefaultOptions.ofThisProcess.resolve(), isImplicit: true)
        return registry.withLock { apps in
            if let app = apps[defaultName] { return app }
            apps[defaultName] = implicit
            return implicit
        }
    }

    /// Removes the app, ends what belongs to it (its Firestore instances are terminated), then calls `completion`
    /// with whether there was something to remove.
    ///
    /// The completion runs on a thread of the library.
    public func delete(_ completion: @escaping (Bool) -> Void) {
        let box = UncheckedCallback(completion)
        Task { box.call(await self.delete()) }
    }

    /// The asynchronous form of `delete(_:)`.
    @discardableResult
    public func delete() async -> Bool {
        let wasRegistered = Self.registry.withLock { apps in
            guard apps[name] === self else { return false }
            apps[name] = nil
            return true
        }
        let actions = deletionActions.withLock { actions in
            defer { actions = [:] }
            return Array(actions.values)
        }
        for action in actions { await action() }
        return wasRegistered
    }

    /// Runs `action` when the app is deleted, instead of an earlier one for the same part. The action should hold its
    /// subject weakly.
    ///
    /// - Parameter part: what of the app it ends, such as one of its databases, which may be opened again many times.
    package func onDeletion(of part: String, _ action: @escaping @Sendable () async -> Void) {
        deletionActions.withLock { $0[part] = action }
    }

    /// How many actions wait for the deletion. For tests.
    package var deletionActionCount: Int { deletionActions.withLock { $0.count } }
}

/// Carries a callback that is not marked `@Sendable` to the one place that calls it, once.
private struct UncheckedCallback: @unchecked Sendable {
    // Unchecked: the API takes plain closures, as the Apple SDK does; the library calls each once.
    let call: (Bool) -> Void
    init(_ call: @escaping (Bool) -> Void) { self.call = call }
}
