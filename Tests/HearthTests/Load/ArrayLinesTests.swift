import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20)))
struct ArrayLinesTests {
    /// What is given out, and then the error, if there is one.
    private static func outcome(_ bytes: [UInt8], _ size: Int) -> [String] {
        let lines = ArrayLines(InputParts(bytes, size), path: "f.json")
        var output: [UInt8] = []
        do throws(CommandFailure) {
            while try lines.read(into: &output, atMost: 100) {}
        } catch {
            return [String(decoding: output, as: UTF8.self), error.description]
        }
        return [String(decoding: output, as: UTF8.self)]
    }

    @Test
    func `Each element is a line, whatever is in its strings`() {
        let text = #" [ {"a": [1, {"b": "]},[\"}"}]}, "\\", 1.5 ,"x\\\"," ]  "#
        for size in [1, 2, 3, 7, 100] {
            expectEqual(
                Self.outcome(Array(text.utf8), size),
                [#"{"a": [1, {"b": "]},[\"}"}]}"# + "\n" + #""\\""# + "\n1.5 \n" + #""x\\\",""# + " \n"])
        }
    }

    @Test
    func `Lines are the same in whatever parts the file is read`() {
        var random = SeededGenerator(seed: .random(in: 0 ... .max))
        for _ in 0..<5_000 {
            let bytes =
                Array("[".utf8) + (0..<random.below(30)).map { _ in random.pick(Array("a,,{}[]\"\"\\ \n\r".utf8)) }
            let each = Self.outcome(bytes, 1)
            for size in [2, 5, 100] {
                expectEqual(Self.outcome(bytes, size), each, "seed \(random.seed), parts of \(size): \(bytes)")
            }
        }
    }
}
