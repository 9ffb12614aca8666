import Basics
import DocumentJSON
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct JSONObjectTests {
    private func read(_ text: String) throws -> JSONObject { try JSONObject(Array(text.utf8)) }

    @Test
    func `Members are read by their kind`() throws {
        let object = try read(
            """
             { "text": "a\\u00e9\\/\\n", "number": -12, "large": 9223372036854775807, "yes": true, "no": false,
              "none": null, "object": {"x": {"y": 1.5}}, "objects": [{"a": 1}, {}], "empty": [] }

            """)
        try expectEqual(object.string("text"), "aé/\n")
        try expect(object.integer("number") as Int? == -12)
        try expect(object.integer("large") as UInt64? == UInt64(Int64.max))
        try expect(object.boolean("yes") == true && object.boolean("no") == false)
        try expect(object.string("none") == nil && !object.has("none") && !object.has("other"))
        try expectEqual(object.object("object")?.object("x")?.has("y"), true)
        try expectEqual(object.objects("objects")?.map { $0.has("a") }, [true, false])
        try expectEqual(object.objects("empty"), [])
    }

    @Test
    func `A member of another kind is named`() throws {
        let object = try read(#"{"text": "1", "number": 1, "fraction": 1.5, "array": [1]}"#)
        #expect(throws: JSONObject.Mistake("'number' is not a string")) { try object.string("number") }
        #expect(throws: JSONObject.Mistake("'text' is not an integer of its range")) {
            try object.integer("text") as Int?
        }
        #expect(throws: JSONObject.Mistake.self) { try object.integer("fraction") as Int? }
        #expect(throws: JSONObject.Mistake("'number' is not true or false")) {
            try object.boolean("number")
        }
        #expect(throws: JSONObject.Mistake("'array' is not an object")) { try object.object("array") }
        #expect(throws: JSONObject.Mistake("'array' is not an array of objects")) {
            try object.objects("array")
        }
    }

    @Test(arguments: [
        "", "[]", "{", "{} x", #"{"a"}"#, #"{"a": }"#, #"{"a": 1,}"#, #"{"a": [1,]}"#, #"{"a": 01}"#,
        #"{"a": tru}"#, #"{"a": "\q"}"#, #"{"a": "\ud800"}"#, #"{a: 1}"#,
        #"{"a": 1, "a": "last"}"#,
        #"{"a": "# + String(repeating: "[", count: 100_000),
    ])
    func `What is not a JSON object is refused`(text: String) {
        #expect(throws: JSONObject.Mistake.self) { try read(text) }
    }

    @Test(arguments: [
        ("\u{FEFF}{} // no line feed", "   {}" + "                "), ("/**/{/* \" */\n}", "    {       \n}"),
        (#"{"a//b": "/* \" // */\\"} // x"#, #"{"a//b": "/* \" // */\\"}     "#), ("/", "/"), ("/*/ {}", "      "),
        ("// é\r\n{}//", "     \r\n{}  "), ("{ \"a", "{ \"a"), (" \u{FEFF}", " \u{FEFF}"),
    ])
    func `Comments and a byte order mark become spaces, in strings they stay`(text: String, blanked: String) {
        expectEqual(JSONComments.blanked(Array(text.utf8)), Array(blanked.utf8))
    }

    @Test
    func `An object with comments has its members, and a mistake the place in the text`() throws {
        let text = "// the indexes\n{ /* none */ \"indexes\": [], // yet\n \"x\": }"
        let mistake = JSONObject.Mistake("it is not a JSON object (expected a value, byte 57)")
        #expect(throws: mistake) { try JSONObject(commented: Array(text.utf8)) }
        let whole = text.replacingOccurrences(of: ", // yet\n \"x\": ", with: "")
        try expectEqual(JSONObject(commented: Array(whole.utf8)).objects("indexes"), [])
        #expect(throws: JSONObject.Mistake.self) { try read(whole) }
    }
}
