// Encode and decode of the book document, as nanoseconds and as ratios to bounds of the same run.
//
// usage: CodecBenchmark [FILTER]     runs only the subjects whose names contain FILTER

import CCodecBounds
import DocumentCoding
import Foundation

@inline(never) func keep<T>(_ value: T) { withExtendedLifetime(value) {} }

let size = codec_bounds_prepare()
guard size > 0 else { fatalError("the C writers differ from each other") }
// protobuf-c packs into that buffer again and again; this is a copy.
let document = [UInt8](UnsafeRawBufferPointer(start: codec_bounds_document(), count: size))

let book = Book.sample
let encoder = FirestoreEncoder()
let decoder = FirestoreDecoder()
guard try encoder.documentBytes(book) == document else { fatalError("the encoder's bytes differ from protobuf-c's") }
guard try decoder.decode(Book.self, fromDocumentBytes: document.span.bytes) == book else {
    fatalError("the decoded book differs")
}

let jsonEncoder = JSONEncoder()
let jsonDecoder = JSONDecoder()
let json = try jsonEncoder.encode(book)

enum Name {
    static let encode = "FirestoreEncoder, bytes lent"
    static let decode = "FirestoreDecoder"
    static let jsonEncode = "Foundation JSONEncoder"
    static let jsonDecode = "Foundation JSONDecoder"
    static let pack = "protobuf-c pack of a ready tree"
    static let unpack = "protobuf-c unpack + free, malloc"
}

var subjects = [
    Subject("C hand-written write") { keep(codec_bounds_write()) },
    Subject(Name.pack) { keep(codec_bounds_pack()) },
    Subject("protobuf-c build in an arena + pack") { keep(codec_bounds_build_and_pack()) },
    Subject(Name.encode) { keep(try encoder.withDocumentBytes(book) { $0.byteCount }) },
    Subject("FirestoreEncoder, bytes copied") { keep(try encoder.documentBytes(book)) },
    Subject("FirestoreEncoder, new each time") {
        keep(try FirestoreEncoder().withDocumentBytes(book) { $0.byteCount })
    },
    Subject(Name.jsonEncode) { keep(try jsonEncoder.encode(book)) },
    Subject("C hand-written read") { keep(codec_bounds_read(document, size)) },
    Subject(Name.unpack) { keep(codec_bounds_unpack(document, size)) },
    Subject("protobuf-c unpack, arena") { keep(codec_bounds_unpack_arena(document, size)) },
    Subject(Name.decode) { keep(try decoder.decode(Book.self, fromDocumentBytes: document.span.bytes)) },
    Subject(Name.jsonDecode) { keep(try jsonDecoder.decode(Book.self, from: json)) },
]
if CommandLine.arguments.count > 1 {
    subjects.removeAll { !$0.name.contains(CommandLine.arguments[1]) }
    guard !subjects.isEmpty else { fatalError("no subject's name contains \(CommandLine.arguments[1])") }
}
try measure(&subjects)

print("document \(size) bytes, JSON \(json.count) bytes")
print("ns per document, median (least - most) of \(subjects[0].figures.count) rounds")
for subject in subjects {
    let name = subject.name.padding(toLength: 40, withPad: " ", startingAt: 0)
    print(name + String(format: "%9.0f  (%.0f - %.0f)", subject.median, subject.figures.min()!, subject.figures.max()!))
}

/// Prints how many times faster one subject is than another: the median of the rounds' own ratios.
@MainActor func printRatio(_ name: String, to bound: String, goal: Double) {
    guard let subject = subjects.first(where: { $0.name == name }),
        let other = subjects.first(where: { $0.name == bound })
    else { return }
    let ratios = zip(other.figures, subject.figures).map { $0 / $1 }.sorted()
    let title = "\(name) / \(bound)".padding(toLength: 66, withPad: " ", startingAt: 0)
    print(title + String(format: "%6.2f x faster  (goal %.1f)", ratios[ratios.count / 2], goal))
}
printRatio(Name.encode, to: Name.jsonEncode, goal: 10)
printRatio(Name.encode, to: Name.pack, goal: 1)
printRatio(Name.decode, to: Name.jsonDecode, goal: 6)
printRatio(Name.decode, to: Name.unpack, goal: 1)
