// Encode and decode of the book document, as nanoseconds and as ratios to bounds of the same run.
//
// usage: CodecBenchmark [FILTER]     runs only the subjects whose names contain FILTER

import CCodecBounds
import DocumentCoding
import Foundation

@inline(never) func keep<T>(_ value: T) { withExtendedLifetime(value) {} }

let size = codec_bounds_prepare()
guard size > 0 else { fatalError("the C writers differ from each other") }
let document = UnsafeRawBufferPointer(start: codec_bounds_document(), count: size)

let book = Book.sample
let encoder = FirestoreEncoder()
let encoded = try encoder.documentBytes(book)
guard encoded.elementsEqual(document) else { fatalError("the encoder's bytes differ from protobuf-c's") }

let jsonEncoder = JSONEncoder()
let jsonDecoder = JSONDecoder()
let json = try jsonEncoder.encode(book)

var subjects = [
    Subject("C hand-written write") { keep(codec_bounds_write()) },
    Subject("protobuf-c pack of a ready tree") { keep(codec_bounds_pack()) },
    Subject("protobuf-c build in an arena + pack") { keep(codec_bounds_build_and_pack()) },
    Subject("FirestoreEncoder, bytes lent") { keep(try encoder.withDocumentBytes(book) { $0.byteCount }) },
    Subject("FirestoreEncoder, bytes copied") { keep(try encoder.documentBytes(book)) },
    Subject("FirestoreEncoder, new each time") { keep(try FirestoreEncoder().withDocumentBytes(book) { $0.byteCount }) },
    Subject("Foundation JSONEncoder") { keep(try jsonEncoder.encode(book)) },
]
if CommandLine.arguments.count > 1 {
    subjects.removeAll { !$0.name.contains(CommandLine.arguments[1]) }
}
try measure(&subjects)
print("document \(size) bytes, JSON \(json.count) bytes; ns per document, median (least - most) of \(subjects[0].figures.count) rounds")
for subject in subjects {
    let name = subject.name.padding(toLength: 40, withPad: " ", startingAt: 0)
    print(name + String(format: "%9.0f  (%.0f - %.0f)", subject.median, subject.figures.min()!, subject.figures.max()!))
}
