// The Swift half of Tools/demo.
//
// usage: hearth-demonstration convert < INDEX > LINES     Debian's package index to JSON lines
//        hearth-demonstration tour HOST PORT              reads and writes in a server that holds them

import FirebaseCore
import FirebaseFirestore
import Foundation

let arguments = CommandLine.arguments.dropFirst()

switch (arguments.first, arguments.count) {
case ("convert", 1):
    let count = try PackageIndex.convert(from: .standardInput, to: .standardOutput)
    FileHandle.standardError.write(Data("\(count) records\n".utf8))
    if count == 0 { exit(1) }
case ("tour", 3):
    let endpoint = Array(arguments)
    guard let port = Int(endpoint[2]) else { fatalError("not a port: \(endpoint[2])") }
    FirebaseApp.configure()
    let database = Firestore.firestore()
    database.useEmulator(withHost: endpoint[1], port: port)
    try await Tour(database: database).run()
default:
    FileHandle.standardError.write(Data("usage: hearth-demonstration convert | tour HOST PORT\n".utf8))
    exit(2)
}
