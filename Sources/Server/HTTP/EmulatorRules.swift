internal import Basics
internal import DocumentJSON
internal import SecurityRules

/// The JSON of the emulator's route for rules: `{"rules": {"files": [{"name": ..., "content": ...}]}}`.
enum EmulatorRules {
    /// The name of the one file.
    static let fileName = "firestore.rules"

    /// The rules in the body of a request.
    ///
    /// - Throws: `INVALID_ARGUMENT` if the body has no text of rules, or several.
    static func text(of body: RawSpan) throws(RequestError) -> String {
        do throws(JSONObject.Mistake) {
            let files = try JSONObject([UInt8](copying: body)).object("rules")?.objects("files") ?? []
            guard files.count == 1, let text = try files[0].string("content") else {
                throw JSONObject.Mistake("it must have rules.files with one file that has content")
            }
            return text
        } catch {
            throw .invalidArgument("The body cannot be read: \(error).")
        }
    }

    static func filesJSON(_ ruleset: Ruleset) -> String {
        "{\"files\":[{\"name\":\"\(fileName)\",\"content\":\(JSONText.quoted(ruleset.source.text))}]}"
    }
}
