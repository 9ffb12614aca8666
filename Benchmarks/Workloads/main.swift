// The benchmarks' workloads that speak through the Swift client or start servers; Tools/bench runs them.
//
// usage: hearth-bench store DATA HEARTH BOOKS
//        hearth-bench indexes DIRECTORY DOCUMENTS
//        hearth-bench entries DATA FILE
//        hearth-bench adaptive DIRECTORY DOCUMENTS
//        hearth-bench calls HOST CALLS
//        hearth-bench cache HOST:PORT DIRECTORY DOCUMENTS
//        hearth-bench client HOST:PORT DIRECTORY DOCUMENTS
//        hearth-bench changes HOST:PORT
//        hearth-bench listing HOST:PORT DOCUMENTS
//        hearth-bench pipelines HOST:PORT SERVER_PROCESS QUERIES RUNS

import Foundation

let arguments = Array(CommandLine.arguments.dropFirst())

switch (arguments.first, arguments.count) {
case ("store", 4):
    try await StoreFigures(data: arguments[1], binary: arguments[2], books: arguments[3]).run()
case ("indexes", 3):
    guard let documents = Int(arguments[2]) else { usage() }
    try IndexFigures(directory: arguments[1], documents: documents).run()
case ("entries", 3): try EntryDump(directory: arguments[1], output: arguments[2]).run()
case ("adaptive", 3):
    guard let documents = Int(arguments[2]), documents > 0 else { usage() }
    try AdaptiveFigures(directory: arguments[1], documents: documents).run()
case ("calls", 3):
    guard let calls = Int(arguments[2]), calls >= 100 else { usage() }
    try await ClientCalls(host: arguments[1], calls: calls).run()
case ("cache", 4):
    guard let documents = Int(arguments[3]), documents > 0 else { usage() }
    try await CacheFigures(host: arguments[1], directory: arguments[2], documents: documents).run()
case ("client", 4):
    guard let documents = Int(arguments[3]), documents >= 300 else { usage() }
    try await ClientFigures(host: arguments[1], directory: arguments[2], documents: documents).run()
case ("changes", 2): try await ChangeFigures(host: arguments[1]).run()
case ("listing", 3):
    guard let documents = Int(arguments[2]), documents >= 500 else { usage() }
    try await ListingFigures(host: arguments[1], documents: documents).run()
case ("pipelines", 5):
    guard let server = Int32(arguments[2]), let runs = Int(arguments[4]), runs > 0 else { usage() }
    try await PipelineFigures(host: arguments[1], server: server, queries: arguments[3], runs: runs).run()
default: usage()
}

func usage() -> Never {
    FileHandle.standardError.write(
        Data(
            """
            usage: hearth-bench store DATA HEARTH BOOKS | indexes DIRECTORY DOCUMENTS | entries DATA FILE
                 | adaptive DIRECTORY DOCUMENTS | calls HOST CALLS | cache HOST:PORT DIRECTORY DOCUMENTS
                 | client HOST:PORT DIRECTORY DOCUMENTS | changes HOST:PORT | listing HOST:PORT DOCUMENTS
                 | pipelines HOST:PORT SERVER_PROCESS QUERIES RUNS

            """.utf8))
    exit(2)
}
