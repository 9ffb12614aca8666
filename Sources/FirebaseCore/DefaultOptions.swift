import Foundation

/// Finds the options of the default app if the program sets none.
///
/// The sources are the environment, then a `GoogleService-Info.plist`, then a fixed project id.
package struct DefaultOptions {
    /// The project used when nothing names one.
    package static let fallbackProjectID = "hearth"
    /// Environment variables that name the project, the first that is set and not empty wins.
    package static let projectVariables = ["HEARTH_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"]

    let environment: [String: String]
    let propertyListPaths: [String]

    package init(environment: [String: String], propertyListPaths: [String]) {
        self.environment = environment
        self.propertyListPaths = propertyListPaths
    }

    /// What this process sees: its environment, its main bundle and its working directory.
    package static var ofThisProcess: DefaultOptions {
        let name = "GoogleService-Info.plist"
        let bundled = Bundle.main.path(forResource: "GoogleService-Info", ofType: "plist")
        return DefaultOptions(
            environment: ProcessInfo.processInfo.environment,
            propertyListPaths: [bundled, FileManager.default.currentDirectoryPath + "/" + name].compactMap { $0 })
    }

    /// The options; never fails, because the fallback project always exists (databases are created on first write).
    package func resolve() -> FirebaseOptions {
        let options =
            propertyListPaths.lazy.compactMap { FirebaseOptions(contentsOfFile: $0) }.first
            ?? FirebaseOptions(googleAppID: "", gcmSenderID: "")
        if let named = Self.projectVariables.lazy.compactMap({ environment[$0] }).first(where: { !$0.isEmpty }) {
            options.projectID = named
        }
        if options.projectID?.isEmpty ?? true {
            options.projectID = Self.fallbackProjectID
        }
        return options
    }
}
