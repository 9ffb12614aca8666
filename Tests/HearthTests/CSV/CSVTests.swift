// CSV: records, types, and files through real servers in both directions.

import Foundation
import TestSupport
import Testing

@testable import hearth

@Suite(.serialized, .timeLimit(.minutes(20)))
struct CSVTests {
    private let directory = TemporaryDirectory("csv")

    private struct Cell: Equatable {
        let text: String
        let isQuoted: Bool
    }

    private static func cells(_ record: CSVRecord) -> [Cell] {
        zip(record.texts, 0...).map { Cell(text: $0, isQuoted: record[$1].isQuoted) }
    }

    private static func records(_ text: String, _ size: Int = 4) throws -> [[Cell]] {
        let reader = try CSVReader(InputParts(Array(text.utf8), size), name: "f.csv")
        var records: [[Cell]] = []
        while try reader.next() { records.append(cells(reader.record)) }
        return records
    }

    @Test
    func `Records have cells with and without quotes, commas and line ends within, and any line end`() throws {
        let text = "\u{FEFF}a,b\r\n\r\n1,\"x,\"\"y\"\"\r\nz\"\n\"\",\r,é"
        for size in [1, 2, 3, 7, 100] {
            let records = try Self.records(text, size)
            expectEqual(records.map { $0.map(\.text) }, [["a", "b"], ["1", "x,\"y\"\r\nz"], ["", ""], ["", "é"]])
            expectEqual(records[2].map(\.isQuoted), [true, false])
        }
        try expect(Self.records("").isEmpty)
        for (text, reason) in [
            ("a\n\"b", "f.csv:2: the quotes have no end"), ("\"a\"b", "f.csv:1: there is text after"),
            ("a\n\"\n\n\"\n\"x\"y\n", "f.csv:5: there is text after"),
        ] {
            let error = #expect(throws: CSVProblem.self) { try Self.records(text) }
            expectEqual(error?.description.hasPrefix(reason), true, "\(String(describing: error))")
        }
    }

    @Test
    func `After a record that is not valid comes the next one, and the text of each is as it was`() throws {
        let bad = Array("a,\"b\"c,\"d\n\"x\n\"\"y\"\"\",\r\n".utf8) + [0xFF] + Array(",\"1\n2\"\nlast".utf8)
        for size in [1, 2, 3, 7, 100] {
            let reader = try CSVReader(InputParts(bad, size), name: "f.csv", keepsText: true)
            var seen: [[String]] = []
            while true {
                var reason = ""
                do throws(CSVProblem) {
                    guard try reader.next() else { break }
                } catch {
                    expect(error.isLocal)
                    reason = error.reason
                }
                seen.append([String(decoding: reader.text, as: UTF8.self), reason])
            }
            expectEqual(
                seen,
                [
                    ["a,\"b\"c,\"d", "there is text after a cell in quotes"], ["\"x\n\"\"y\"\"\",", ""],
                    ["\u{FFFD},\"1\n2\"", "the text is not UTF-8"], ["last", ""],
                ])
        }
    }

    /// What a reader gives out of bytes that come in parts of a size.
    private static func outcomes(_ bytes: [UInt8], _ size: Int) throws -> [String] {
        let reader = try CSVReader(InputParts(bytes, size), name: "f.csv", keepsText: true, recordBytesMax: 9)
        var outcomes: [String] = []
        while true {
            do throws(CSVProblem) {
                guard try reader.next() else { return outcomes }
                outcomes.append("\(reader.line) \(cells(reader.record)) \(reader.text)")
            } catch {
                outcomes.append("\(error) \(reader.text)")
                if !error.isLocal { return outcomes }
            }
        }
    }

    @Test
    func `Records are the same in whatever parts the file is read`() throws {
        var random = SeededGenerator(seed: .random(in: 0 ... .max))
        for _ in 0..<2_000 {
            let bytes = (0..<random.below(40)).map { _ in random.pick(Array("aab,,\"\"\"\n\r".utf8) + [0xFF]) }
            let each = try Self.outcomes(bytes, 1)
            for size in [2, 5, 100] {
                try expectEqual(Self.outcomes(bytes, size), each, "seed \(random.seed), parts of \(size): \(bytes)")
            }
        }
    }

    @Test
    func `An error shows the beginning of a name that is none`() throws {
        let header = try Self.records("a," + String(repeating: "b", count: 10_000))[0]
        let error = #expect(throws: CommandFailure.self) { try CSVColumns(header.map(\.text)) }
        expectEqual(error?.description.hasPrefix("column 2: \"bbb"), true)
        expect(error?.description.utf8.count ?? .max < 200)
    }

    @Test
    func `The type of a column is what all of its cells look like`() {
        func type(_ cells: String...) -> CSVType {
            var inference = CSVInference()
            for cell in cells { inference.add(CSVCell(Array(cell.utf8).byteSpan)) }
            return inference.type
        }
        expectEqual(type("1", "", "-20", "null"), .integer)
        expectEqual(type("1", "2.5", "1e300"), .double)
        expectEqual(type("9223372036854775808"), .double)
        expectEqual(type("01234"), .string)
        expectEqual(type("+49 30"), .string)
        expectEqual(type("true", "FALSE"), .boolean)
        expectEqual(type("true", "1"), .string)
        expectEqual(type("2031-05-02T08:15:30Z", "2031-05-02T10:15:30.25+02:00"), .timestamp)
        expectEqual(type("2031-05-02"), .string)
        expectEqual(type("[1,2]", "{\"a\":1}"), .json)
        expectEqual(type("[1,2"), .string)
        expectEqual(type("NaN"), .string)
        expectEqual(type("", "null"), .string)
    }

    @Test
    func `Types are declared for columns of any name, in quotes where a name has a comma or a quote`() throws {
        let columns: [(String, CSVType)] = [
            ("zip", .string), ("last, first", .json), ("a \"b\"", .integer), ("c:d", .double), ("\"\u{301}x", .bytes),
        ]
        let text = columns.map { CSVTypes.text($0.0, $0.1) }.joined(separator: ",")
        expect(text.hasPrefix("zip:string,\"last, first\":json,\"a \"\"b\"\"\":integer,c:d:double,"), "\(text)")
        let types = try CSVTypes.parse(text)
        expectEqual(types.declared.count, columns.count)
        for (name, type) in columns { expectEqual(types.declared[Array(name.utf8)], type, "\(name)") }
        try expectEqual(CSVTypes.parse(types.flagText), types)
        for wrong in [
            "", ",", "a", "a:string,", "\"a:string", "\"a\"string", "\"a\"b:string", "\"a,b\":", "\"a\":x",
            "a,b:string",
        ] {
            #expect(throws: FlagTextError.self) { try CSVTypes.parse(wrong) }
        }
    }

    private func write(_ name: String, _ text: String) throws -> String {
        let path = directory.path(of: name)
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func run(_ server: ServerProcess, _ words: String...) throws -> HearthBinary.Outcome {
        try HearthBinary.run(words + ["--address", "127.0.0.1:\(server.port)", "--quiet"])
    }

    @Test
    func `A file is loaded with the types that are shown, nested fields, nulls and references`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let text = """
            isbn,title,author.name,author.born,First Name,price,added,loan,tags,a.$b\r
            007,Ulysses,James Joyce,1882,x,12.50,2031-05-02T08:15:30Z,users/ada,"[""a"",1]",1\r
            8,"",null,,,3,,,,\r
            9,,,,,,,,,\r

            """
        let file = try write("books.csv", text)
        let asks = try run(server, "load", "--collection", "books", "--id-field", "isbn", file)
        expect(asks.status == 2 && asks.errors.contains("--types"), "\(asks.errors)")
        expect(asks.output.contains("3 records") && asks.output.contains("author.born  integer"), "\(asks.output)")
        let loaded = try run(
            server, "load", "--collection", "books", "--id-field", "isbn", "--types", "loan:reference", file)
        expect(loaded.status == 0 && loaded.output.contains("loaded 3 documents"), "\(loaded.errors)")
        let lines = try run(server, "export", "--collection", "books").output.split(separator: "\n").map(String.init)
        expectEqual(
            lines,
            [
                #"{"__name__":"007","First Name":"x","a":{"$map":{"$b":1}},"#
                    + #""added":{"$timestamp":"2031-05-02T08:15:30Z"},"author":{"born":1882,"name":"James Joyce"},"#
                    + #""isbn":"007","loan":{"$reference":"users/ada"},"#
                    + #""price":12.5,"tags":["a",1],"title":"Ulysses"}"#,
                #"{"__name__":"8","author":{"name":null},"isbn":"8","price":3.0,"title":""}"#,
                #"{"__name__":"9","isbn":"9"}"#,
            ])
        // What is wrong is found before anything is stored.
        for (text, reason) in [
            ("a,b\n1,2\n1,x\n", ":3: b: \"x\" is not an integer"), ("a,b\n1\n", ":2: the record has 1 cells"),
            ("a,a\n", "two columns"), ("a,\n", "not the name of a field"), ("", "has no header"),
            ("a,b.\n", "not the name of a field"), ("b,b.c\n1,2\n", ":2: b has a value and members"),
        ] {
            let file = try write("bad.csv", text)
            let types = text.contains("x") ? "b:integer" : "inferred"
            let outcome = try run(server, "load", "--collection", "bad", "--types", types, file)
            expect(outcome.status == 1 && outcome.errors.contains(reason), "\(text): \(outcome.errors)")
        }
        try expect(run(server, "export", "--collection", "bad").output.isEmpty)
        let none = try run(server, "load", "--collection", "c", "--types", "x:integer", file)
        expect(none.status == 1 && none.errors.contains("there is no column"), "\(none.errors)")
        let text2 = try run(server, "load", "--collection", "c", "--types", "x:number", file)
        expect(text2.status == 2 && text2.errors.contains("inferred, or COLUMN:TYPE"), "\(text2.errors)")
    }

    @Test
    func `Bad records can be put aside, corrected and loaded`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        var records = (0..<1_000).map { "k\($0),\($0),\"text\n\($0)\"" }
        records[3] = "k3,three,\"a \"\"b\"\"\nc\""
        records[4] = "k4,4"
        records[500] = "k500,500,\"x\" y"
        // Two that JSON has: an id that is none, and a document that is too large.
        records[600] = ".,600,z"
        records[700] = "k700,700,\(String(repeating: "z", count: 1_100_000))"
        let file = try write("books.csv", "id,n,text\n\(records.joined(separator: "\n"))\n")
        let aside = directory.path(of: "aside.csv")
        let words = ["load", "--collection", "c", "--id-field", "id", "--address", "127.0.0.1:\(server.port)"]
        let flags = ["--types", "n:integer", "--skip-bad", aside]
        let loaded = try HearthBinary.run(words + flags + [file])
        expectEqual(loaded.status, 0, "\(loaded.errors)")
        expect(loaded.output.contains("1,000 records, 3 of them not valid"), "\(loaded.output)")
        expect(loaded.output.contains("loaded 995 documents") && loaded.output.contains("5 invalid lines"))
        let text = try String(contentsOfFile: aside, encoding: .utf8)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        expectEqual(lines[0], "\"__error__\",id,n,text")
        expectEqual(
            lines[1], "\"\(file): record 4: n: \"\"three\"\" is not an integer of 64 bits\",k3,three,\"a \"\"b\"\"")
        expectEqual(lines[2], "c\"")
        for number in [4, 500, 600, 700] { expect(text.contains(",\(records[number])\n"), "\(number)") }
        expectEqual(lines.count, 8)
        let corrected =
            text.replacing("three", with: "3").replacing("k4,4", with: "k4,4,w").replacing("\"x\" y", with: "x y")
            .replacing(",.,", with: ",k600,").replacing(String(repeating: "z", count: 1_000), with: "z")
        let again = try run(
            server, "load", "--collection", "c", "--id-field", "id", "--types", "n:integer",
            try write("corrected.csv", corrected))
        expect(again.status == 0 && again.output.contains("loaded 5 documents"), "\(again.errors)")
        let stored = try run(server, "export", "--collection", "c").output.split(separator: "\n")
        expectEqual(stored.count, 1_000)
        expect(stored.contains(#"{"__name__":"k3","id":"k3","n":3,"text":"a \"b\"\nc"}"#))
        expect(!stored.contains { $0.contains("__error__") })
        // What has no next record stops all the same, and so does what cannot be read again.
        let open = try run(
            server, "load", "--collection", "d", "--types", "inferred", "--skip-bad", aside,
            try write("open.csv", "a\n\"b\n"))
        expect(open.status == 1 && open.errors.contains(":2: the quotes have no end"), "\(open.errors)")
        let piped = try HearthBinary.run(words + ["--csv"] + flags + ["-"], input: file)
        expect(piped.status == 2 && piped.errors.contains("--skip-bad needs a file"), "\(piped.errors)")
    }

    /// The first cell of each record whose cells have 12 bytes at most, and `!` for each that is longer.
    private func read(_ text: String) throws -> String {
        let reader = try CSVReader(InputParts(Array(text.utf8), 5), name: "a.csv", keepsText: true, recordBytesMax: 12)
        var cells = ""
        while true {
            do throws(CSVProblem) {
                guard try reader.next() else { return cells }
                cells += reader.record.texts[0]
            } catch {
                guard error.isLocal else { throw error }
                expect(error.reason.hasPrefix("the record is longer than") && reader.text.isEmpty, "\(error)")
                cells += "!"
            }
        }
    }

    @Test(arguments: [
        ("a,123456789012\nb", "!b"), ("a,\"1234567890\n12\",x,y\nb,c\n", "!b"),
        // Quotes within quotes, and quotes that do not begin a cell.
        ("a,\"12345678901\"\"23\n\"\",\n\",c\r\nb", "!b"), ("a,12345678901\"2,3\"\n4\"\nb,\"c\"", "!4\"b"),
        // A later cell of the record is in quotes.
        ("a,1234567890123,\"x\ny\",\"\"\"\n\"\nb", "!b"), ("a,1234567890123,x\"\"y\nb\n", "!b"),
        ("b\na,\"123456789012\n\n\"", "b!"), ("a,12345678901\nb", "ab"),
    ])
    func `What comes after a record that is too long is read`(text: String, cells: String) throws {
        try expectEqual(read(text), cells)
    }

    @Test
    func `Quotes without an end are an error after a record that is too long too`() {
        let fault = #expect(throws: CSVProblem.self) { try read("a,\"1234567890123\nb\n") }
        expectEqual(fault?.reason, "the quotes have no end")
    }

    @Test(arguments: [",", ",\"\""])
    func `The number of cells of a record is bounded`(cell: String) throws {
        let many = "1" + String(repeating: cell, count: 1_000_000)
        let path = try write("cells.csv", "a\n\(many),\"x\ny\",\n2\n\(many.dropLast(cell.count))\n")
        let reader = try CSVReader(DescriptorBytes(path), name: "a.csv", keepsText: true)
        try expect(reader.next() && reader.record.count == 1)
        let fault = #expect(throws: CSVProblem.self) { try reader.next() }
        expect(fault?.description == "a.csv:2: the record has more than 1,000,000 cells" && fault?.isLocal == true)
        expect(reader.text.isEmpty)
        try expect(reader.next())
        expectEqual(Self.cells(reader.record), [Cell(text: "2", isQuoted: false)])
        try expect(reader.next() && reader.record.count == 1_000_000)
        try expect(!reader.next())
    }

    @Test
    func `Text after a cell in quotes is bounded as the record is`() throws {
        try expectEqual(read("\"a\"1234567890123\nb"), "!b")
    }

    @Test
    func `Records that are too long are put aside too, and what comes after them is loaded`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let long = "\"" + String(repeating: "xxxxxxx\n", count: 17 << 17) + "\""
        // Each byte takes six in JSON.
        let control = String(repeating: "\u{1}", count: 3 << 20)
        let records = ["k1,a,b", "k2,\(long),", "k3,a,\"b\"", "k4,\(control),", "k5,,a"]
        let file = try write("long.csv", "id,n,text\n\(records.joined(separator: "\n"))\n")
        let aside = directory.path(of: "aside.csv")
        let loaded = try run(
            server, "load", "--collection", "c", "--id-field", "id", "--types", "n:string", "--skip-bad", aside, file)
        expectEqual(loaded.status, 0, "\(loaded.errors)")
        expect(loaded.output.contains("loaded 3 documents") && loaded.output.contains("2 invalid lines"))
        let stored = try run(server, "export", "--collection", "c").output.split(separator: "\n")
        expectEqual(stored.compactMap { $0.split(separator: "\"").dropFirst(3).first }, ["k1", "k3", "k5"])
        let text = try String(contentsOfFile: aside, encoding: .utf8)
        expect(text.contains("\"\(file): record 2: the record is longer than 16 MiB\",\n"))
        expect(text.contains("record 4: the record is longer than 16 MiB as JSON\",k4,"))
        expect(text.utf8.count < 4 << 20)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `An export as CSV comes back the same with the types that it prints, compressed too`() throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let lines = [
            #"{"__name__":"a","n":1,"s":"","t":{"$timestamp":"1969-12-31T23:59:59.5Z"},"y":{"$bytes":"AAEC"}}"#,
            #"{"__name__":"b","m":{"x":{"y":-0.0},"z":[]},"n":null,"s":"null","u":{"$reference":"x/y"}}"#,
            #"{"__name__":"c","g":{"$geoPoint":[1.5,-2.0]},"m":{"x":{}},"n":2,"s":"a,\"b\"\r\nc","#
                + #""v":{"$vector":[0.5]}}"#,
            #"{"__name__":"d","mixed":1,"n":3,"s":"007","w":{"$double":"NaN"}}"#,
            #"{"__name__":"e/f/null","a.b":true,"mixed":1.5,"ü":"é"}"#, #"{"__name__":"g","mixed":"1"}"#,
            #"{"__name__":"h"}"#, #"{"__name__":"i","empty":{"$bytes":""}}"#,
            // Names with commas and quotes; a quote that is a part of another character.
            "{\"__name__\":\"ia\",\"last, first\":\"1\",\"q\\\"\u{301}\":1,\"s\":\"\\\"\u{301}, \\\"\"}",
            // Line ends of Unicode inside a text, and two names that look alike.
            "{\"__name__\":\"j\",\"list\":[\"a\u{2028}b\u{85}c\u{2029}\"],"
                + "\"u\u{308}\":\"decomposed\",\"\u{fc}\":\"composed\"}",
            // BSON values, which are maps in the API, and a reference that JSON escapes.
            #"{"__name__":"k","bson":{"__min__":null},"r":{"__regex__":{"pattern":"a,b","options":"i"}},"#
                + #""u":{"$reference":"x/\"y\\\u0001,"}}"#,
        ]
        let file = try write("in.jsonl", lines.joined(separator: "\n") + "\n")
        try expectEqual(run(server, "load", "--collection", "c", file).status, 0)
        let expected = try run(server, "export", "--collection", "c", "--recursive").output
        expectEqual(expected.split(separator: "\n").count, lines.count)
        let csv = directory.path(of: "out.csv")
        let exported = try HearthBinary.run([
            "export", "--collection", "c", "--recursive", "--format", "csv", "--output", csv, "--address",
            "127.0.0.1:\(server.port)",
        ])
        expectEqual(exported.status, 0, "\(exported.errors)")
        guard let types = exported.errors.split(separator: "'").dropFirst().first.map(String.init) else {
            return expect(Bool(false), "no types in \(exported.errors)")
        }
        expect(types.contains("mixed:json") && types.contains("n:integer"), "\(types)")
        try expectEqual(run(server, "delete", "--recursive", "c", "--yes").status, 0)
        try expectEqual(run(server, "load", "--collection", "c", "--types", types, csv).status, 0)
        try expectEqual(run(server, "export", "--collection", "c", "--recursive").output, expected)
        // Compressed, through an interruption's state, and from standard input.
        try expectEqual(HearthBinary.run(["-kf", csv], executable: "/usr/bin/gzip").status, 0)
        let packed = try run(server, "load", "--collection", "d", "--types", types, csv + ".gz")
        expectEqual(packed.status, 0, "\(packed.errors)")
        try expectEqual(run(server, "export", "--collection", "d", "--recursive").output, expected)
        let words = ["load", "--collection", "p", "--csv", "--quiet", "--address", "127.0.0.1:\(server.port)", "-"]
        let blind = try HearthBinary.run(words, input: csv)
        expect(blind.status == 2 && blind.errors.contains("--types"), "\(blind.errors)")
        let piped = try HearthBinary.run(words + ["--types", types], input: csv)
        expectEqual(piped.status, 0, "\(piped.errors)")
        try expectEqual(run(server, "export", "--collection", "p", "--recursive").output, expected)
        // A whole database with full names; all databases of all projects as lines, and back.
        try expectEqual(run(server, "load", "--collection", "c", "--project", "p2", "--database", "d2", file).status, 0)
        let everything = try run(server, "export", "--all", "--project", "*")
        expectEqual(everything.status, 0, "\(everything.errors)")
        expect(everything.output.contains("projects/p2/databases/d2/documents/c/e/f/null"))
        let project = try run(server, "export", "--all", "--database", "*", "--project", "p2")
        expectEqual(project.output.split(separator: "\n").count, lines.count)
        try expectEqual(run(server, "export", "--collection", "c", "--project", "*").status, 2)
        let joined = try write("all.jsonl", everything.output)
        let second = try ServerProcess(data: directory.path(of: "second"))
        try expectEqual(run(second, "load", joined).status, 0)
        try expectEqual(run(second, "export", "--all", "--project", "*", "--database", "*").output, everything.output)
        let all = directory.path(of: "all.csv")
        let whole = try run(server, "export", "--all", "--format", "csv", "--output", all)
        expectEqual(whole.status, 0, "\(whole.errors)")
        try expect(String(contentsOfFile: all, encoding: .utf8).contains("\nprojects/hearth/databases/"))
    }
}
