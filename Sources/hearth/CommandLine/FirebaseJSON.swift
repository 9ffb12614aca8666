// `hearth serve --config firebase.json`: the file of a Firebase project, as it is.

import DocumentJSON

/// What `firebase.json` says about Firestore, as settings of `hearth serve`.
///
/// | `firebase.json` | setting |
/// |---|---|
/// | `emulators.firestore.host`, `emulators.firestore.port` | `host`, `port` |
/// | `firestore.rules`, `firestore.indexes`, relative to the file | `rules`, `indexes` |
/// | `projects.default` of `.firebaserc` beside the file | `indexes-project` |
///
/// Everything else in the file is for other products and is not read.
enum FirebaseJSON {
    /// Whether a file of settings is `firebase.json`: that is an object, and no line of a file of settings begins so.
    static func isIt(_ bytes: [UInt8]) -> Bool {
        InputKind.firstByte(JSONComments.blanked(bytes)) == UInt8(ascii: "{")
    }

    /// - Parameters:
    ///   - path: of the file.
    ///   - projects: the contents of `.firebaserc`; nil if there is none.
    /// - Throws: `UsageError` with the name of the file.
    static func settings(
        _ bytes: [UInt8], path: String, projects: [UInt8]? = nil
    ) throws(UsageError) -> [ConfigurationFile.Setting] {
        do throws(JSONObject.Mistake) {
            let file = try JSONObject(commented: bytes)
            var values: [(String, String?)] = []
            if let emulator = try file.object("emulators")?.object("firestore") {
                let port: Int? = try emulator.integer("port")
                values += [("host", try emulator.string("host")), ("port", port.map(String.init))]
            }
            if let database = try defaultDatabase(file) {
                values.append(("rules", try database.string("rules").map { relative($0, to: path) }))
                if let indexes = try database.string("indexes") {
                    values.append(("indexes", relative(indexes, to: path)))
                    let project = try projects.map(JSONObject.init(commented:))?.object("projects")?.string("default")
                    values.append(("indexes-project", project))
                }
            }
            return values.compactMap { name, value in
                value.map { ConfigurationFile.Setting(name: name, value: $0, line: nil) }
            }
        } catch {
            throw UsageError(message: "\(path): \(error)")
        }
    }

    /// The entry of the default database: the member is one entry, or an array with the database of each.
    private static func defaultDatabase(_ file: JSONObject) throws(JSONObject.Mistake) -> JSONObject? {
        if let entry = try? file.object("firestore") { return entry }
        for entry in try file.objects("firestore") ?? [] {
            if try entry.string("database") ?? "(default)" == "(default)" { return entry }
        }
        return nil
    }

    /// A path in the file, which is relative to the folder of the file.
    private static func relative(_ word: String, to path: String) -> String {
        guard !word.hasPrefix("/"), let slash = path.lastIndex(of: "/") else { return word }
        return path[...slash] + word
    }

    /// The path of `.firebaserc` beside the file.
    static func projectsPath(beside path: String) -> String { relative(".firebaserc", to: path) }
}
