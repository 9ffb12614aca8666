import Basics
import DocumentModel
import FirestoreMessages
import HearthClient

/// The work of `hearth export`: it reads pages of documents at one read time, and writes one while the next is read.
struct Exporter {
    let client: HearthClient
    let place: SubtreeReader.Place
    /// The time whose state is read; nil for now.
    var readTime: TimestampValue?
    var progressLine: ProgressLine

    /// Writes everything.
    ///
    /// - Parameter output: takes the documents of a page; returns how many bytes they became.
    /// - Returns: how many documents there are.
    mutating func run(to output: ([NamedDocument]) throws -> Int) async throws -> Int {
        let prefix = Self.prefix(of: place)
        var documents = 0
        var bytes = 0
        var reading = Self.read(try await SubtreeReader(client, place, at: readTime))
        defer { reading.cancel() }
        while true {
            let (page, reader) = try await reading.value
            if page.isEmpty { break }
            reading = Self.read(reader)
            for document in page where !document.name.hasUTF8Prefix(prefix) {
                throw CommandFailure("the server sent \(document.name), which is not in \(prefix.dropLast())")
            }
            bytes += try output(page)
            documents += page.count
            progressLine.update(documents: documents, bytes: bytes, totalBytes: nil)
        }
        progressLine.clear()
        return documents
    }

    /// What the names of all documents begin with.
    static func prefix(of place: SubtreeReader.Place) -> String {
        switch place {
        case .database(let name): "\(name.documentsRoot)/"
        case .collection(let path), .collectionAlone(let path): "\(path)/"
        case .below(let path): "\(path)/"
        }
    }

    /// Reads the next page in a separate task.
    private static func read(_ reader: SubtreeReader) -> Task<([NamedDocument], SubtreeReader), any Error> {
        Task {
            var reader = reader
            let page = try await reader.next()
            return (page, reader)
        }
    }
}
