public import Foundation

/// The options of an app. Hearth uses the project id only.
///
/// The other fields exist so that code for the Apple SDK compiles and reads back what it set. Configuring an app copies
/// the values: later changes of the object do not affect the app. Not thread-safe while being changed.
public final class FirebaseOptions: NSObject, NSCopying {
    /// The identifier of the app, such as `1:1234567890:ios:321abc456def7890`. Not used by Hearth.
    public var googleAppID: String
    /// The sender id of the project. Not used by Hearth.
    public var gcmSenderID: String
    /// The project that holds the databases: the `p` of `projects/p/databases/d`. `nil` means the default project of
    /// the environment (see `defaultOptions()`).
    public var projectID: String?
    /// The API key. Not used by Hearth.
    public var apiKey: String?
    /// The client id. Not used by Hearth.
    public var clientID: String?
    /// The bundle id. Not used by Hearth.
    public var bundleID: String = ""
    /// The app group. Not used by Hearth.
    public var appGroupID: String?
    /// The storage bucket. Not used by Hearth.
    public var storageBucket: String?
    /// The database URL. Not used by Hearth.
    public var databaseURL: String?

    /// Creates options with the two values that the Apple SDK requires.
    public init(googleAppID: String, gcmSenderID: String) {
        self.googleAppID = googleAppID
        self.gcmSenderID = gcmSenderID
    }

    /// Options from a `GoogleService-Info.plist` file.
    ///
    /// - Returns: `nil` if the file cannot be read or is not a property list with a dictionary on top.
    public convenience init?(contentsOfFile path: String) {
        guard
            let data = try? Data(contentsOf: URL(fileURLWithPath: path)),
            let list = try? PropertyListSerialization.propertyList(from: data, options: [], format: nil),
            let values = list as? [String: Any]
        else { return nil }
        self.init(
            googleAppID: values["GOOGLE_APP_ID"] as? String ?? "",
            gcmSenderID: values["GCM_SENDER_ID"] as? String ?? "")
        projectID = values["PROJECT_ID"] as? String
        apiKey = values["API_KEY"] as? String
        clientID = values["CLIENT_ID"] as? String
        bundleID = values["BUNDLE_ID"] as? String ?? ""
        storageBucket = values["STORAGE_BUCKET"] as? String
        databaseURL = values["DATABASE_URL"] as? String
    }

    /// The options that `FirebaseApp.configure()` takes: from the environment (`HEARTH_PROJECT`,
    /// `GOOGLE_CLOUD_PROJECT`, `GCLOUD_PROJECT`) or from `GoogleService-Info.plist`, else the project `hearth`. Never
    /// nil, unlike the Apple SDK's.
    @discardableResult
    public static func defaultOptions() -> FirebaseOptions? { DefaultOptions.ofThisProcess.resolve() }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = FirebaseOptions(googleAppID: googleAppID, gcmSenderID: gcmSenderID)
        copy.projectID = projectID
        copy.apiKey = apiKey
        copy.clientID = clientID
        copy.bundleID = bundleID
        copy.appGroupID = appGroupID
        copy.storageBucket = storageBucket
        copy.databaseURL = databaseURL
        return copy
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? FirebaseOptions else { return false }
        return googleAppID == other.googleAppID && gcmSenderID == other.gcmSenderID && projectID == other.projectID
            && apiKey == other.apiKey && clientID == other.clientID && bundleID == other.bundleID
            && appGroupID == other.appGroupID
            && storageBucket == other.storageBucket && databaseURL == other.databaseURL
    }

    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(googleAppID)
        hasher.combine(gcmSenderID)
        hasher.combine(projectID)
        return hasher.finalize()
    }
}
