// The part of an input that is held in memory at once, put in the order of the documents' names.
//
// Sorted documents are neighbours in the server's memtable: an insertion finds its place in memory that the one before
// has just used.

import Basics
import CXXHash
import DocumentModel
import FirestoreMessages

/// Documents of consecutive lines, each name once, in the order of their names.
struct LoadWindow: Sendable {
    /// One document: the first bytes of its path that tell documents apart, and where it lies.
    private struct Entry {
        var key: UInt64
        var chunk: UInt32
        var document: UInt32
    }

    private var chunks: [ParsedChunk] = []
    private var entries: [Entry] = []
    /// The position after the window's last line, with everything before it counted.
    private(set) var end: LoadProgress
    /// Bytes of input.
    private(set) var inputBytes = 0
    private(set) var notes = LoadNotes()

    init(start: LoadProgress) { end = start }

    /// Nothing of the input is in it.
    var isEmpty: Bool { chunks.isEmpty }

    /// Documents to be sent. Of several lines that name one document the last counts.
    var count: Int { entries.count }

    /// Invalid lines, in order; if the load stops at them, at most one, and nothing after it is in the window.
    var badLines: [ParsedChunk.BadLine] { chunks.flatMap(\.badLines) }

    /// Adds what follows the chunks before.
    mutating func append(_ chunk: ParsedChunk) {
        inputBytes += chunk.end.offset - end.offset
        end.offset = chunk.end.offset
        end.lines = chunk.end.lines
        end.documents += chunk.documents.count
        end.skipped += chunk.badLines.count
        notes.add(chunk.notes)
        chunks.append(chunk)
    }

    /// Puts the documents in order; nothing may be appended afterwards.
    mutating func sort() {
        let shared = sharedPrefixCount()
        var entries: [Entry] = []
        entries.reserveCapacity(chunks.reduce(0) { $0 + $1.documents.count })
        for (number, chunk) in chunks.enumerated() {
            for (index, document) in chunk.documents.enumerated() {
                var key: UInt64 = 0
                for at in 0..<8 {
                    let offset = Int(document.path.lowerBound) + shared + at
                    key = key << 8 | (offset < document.path.upperBound ? UInt64(chunk.bytes[offset]) : 0)
                }
                entries.append(Entry(key: key, chunk: UInt32(number), document: UInt32(index)))
            }
        }
        entries.sort { left, right in
            if left.key != right.key { return left.key < right.key }
            let order = comparePaths(left, right)
            if order != 0 { return order < 0 }
            return (left.chunk, left.document) < (right.chunk, right.document)
        }
        // Of those with one name the last one stays.
        var kept = 0
        for index in entries.indices {
            let isRepeated =
                index + 1 < entries.count && entries[index].key == entries[index + 1].key
                && comparePaths(entries[index], entries[index + 1]) == 0
            if isRepeated { continue }
            entries[kept] = entries[index]
            kept += 1
        }
        entries.removeLast(entries.count - kept)
        self.entries = entries
    }

    /// Bytes that all paths begin with.
    private func sharedPrefixCount() -> Int {
        guard let model = chunks.first(where: { !$0.documents.isEmpty }) else { return 0 }
        let first = model.bytes[Self.range(model.documents[0].path)]
        var shared = first.count
        for chunk in chunks {
            for document in chunk.documents {
                let path = chunk.bytes[Self.range(document.path)]
                var same = 0
                while same < min(shared, path.count), path[path.startIndex + same] == first[first.startIndex + same] {
                    same += 1
                }
                shared = same
                if shared == 0 { return 0 }
            }
        }
        return shared
    }

    private func comparePaths(_ left: Entry, _ right: Entry) -> Int {
        let (leftChunk, rightChunk) = (chunks[Int(left.chunk)], chunks[Int(right.chunk)])
        let leftPath = Self.range(leftChunk.documents[Int(left.document)].path)
        let rightPath = Self.range(rightChunk.documents[Int(right.document)].path)
        return leftChunk.bytes.span.bytes.extracting(leftPath).compareBytes(
            rightChunk.bytes.span.bytes.extracting(rightPath))
    }

    private static func range(_ range: Range<Int32>) -> Range<Int> { Int(range.lowerBound)..<Int(range.upperBound) }

    /// The documents from a place in the order on, as many as one commit takes.
    ///
    /// - Parameter database: that of all documents; nil if they are named in full. Then the batch has those of the
    ///   first one's database.
    func batch(from start: WindowPlace, database: DatabaseName?) throws(RequestError) -> LoadBatch {
        let named = if let database { database } else { try self.database(at: start.documents) }
        var batch = LoadBatch(database: named, end: start)
        let prefix = database == nil ? Array("\(named.documentsRoot)/".utf8) : []
        while batch.end.documents < count, !batch.isFull {
            let entry = entries[batch.end.documents]
            let chunk = chunks[Int(entry.chunk)]
            let document = chunk.documents[Int(entry.document)]
            guard chunk.bytes[Self.range(document.path)].starts(with: prefix) else { break }
            batch.writes.append(encoded: chunk.bytes.span.bytes.extracting(Self.range(document.write)))
            batch.lines.append(document.line)
            batch.end.documents += 1
        }
        batch.end.sum = batch.writes.bytes.withUnsafeBytes {
            XXH3_64bits_withSeed($0.baseAddress, $0.count, start.sum) & LoadState.integerMax
        }
        return batch
    }

    /// A place where batches begin, if the documents before it are those that have its sum; else the start.
    func place(_ known: WindowPlace, database: DatabaseName?) throws(RequestError) -> WindowPlace {
        var place = WindowPlace()
        while place.documents < min(known.documents, count) { place = try batch(from: place, database: database).end }
        return place == known ? place : WindowPlace()
    }
}

extension LoadWindow {
    /// The database in the full name of a document.
    private func database(at index: Int) throws(RequestError) -> DatabaseName {
        let chunk = chunks[Int(entries[index].chunk)]
        let name = Array(chunk.bytes[Self.range(chunk.documents[Int(entries[index].document)].path)])
        return DatabaseName(of: try ResourceNameView(resource: name.byteSpan))
    }
}

/// Documents on their way to one commit.
struct LoadBatch: Sendable {
    var writes: CommitWrites
    /// The line of each write, for errors.
    var lines: [Int] = []
    /// The place in the window's order after the last one.
    var end: WindowPlace

    static let documentsMax = 500
    static let bytesMax = 1 << 20

    init(database: DatabaseName, end: WindowPlace) {
        writes = CommitWrites(database: database)
        self.end = end
    }

    var isFull: Bool { lines.count >= Self.documentsMax || writes.bytes.count >= Self.bytesMax }
}
