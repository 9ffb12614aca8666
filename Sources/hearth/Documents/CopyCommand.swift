// `hearth copy`: a document or a collection with everything below it.

import Basics
import DocumentModel
import FirestoreMessages
import HearthClient

/// Copies documents within a database.
enum CopyCommand: AsyncSubcommand {
    static let name = "copy"
    static let summary = "Copies a document or a collection with everything below it."
    static let words = ["FROM", "TO"]
    static let flagGroups = [
        FlagGroup(heading: "Copy", flags: [after] + ProgressFlags.all),
        FlagGroup(heading: "Server", flags: ServerFlags.all),
    ]
    static let discussion = """
        FROM and TO are both documents or both collections of one database. The copy has the
        state of FROM at one time. Documents that exist at TO are replaced, others there
        stay. References in fields are copied as they are.

        The documents are written in commits of up to 500, in the order of their names. If
        the copy is interrupted, it says after which document --after continues; what is
        copied then has the state of that time.

        Examples:

          hearth copy books/ulysses books/ulysses-2
          hearth copy users archive/2026/users
        """

    static let after = Flag<String>(
        "after", "NAME", required: false, help: "Continue after this document at FROM or below it.")

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        let plan = try Plan(
            try PlaceWord.read(arguments.words[0], database), try PlaceWord.read(arguments.words[1], database))
        let last = try arguments.value(of: after).map { try PlaceWord.document($0, database).description }
        if let last, !last.hasUTF8Prefix(plan.source + "/"), last != plan.source {
            throw UsageError(message: "--after \(arguments.value(of: after) ?? "") is not at \(arguments.words[0])")
        }
        try await ReadingFlags.withClient(arguments, of: arguments[ServerFlags.address]) { client in
            var copier = Copier(client: client, plan: plan, progress: ProgressFlags.line(arguments))
            do {
                try await copier.run(after: last)
            } catch {
                guard let last = copier.lastDurable else { throw error }
                let path = last.dropping(prefix: database.documentsRoot + "/")
                throw CommandFailure("\(ErrorText.describe(error))\nContinue with --after \(path)")
            }
            if !arguments[ProgressFlags.quiet] {
                StandardError.write("\(ProgressLine.grouped(copier.count, "document")) copied\n")
            }
        }
    }

    /// Where documents come from and go.
    struct Plan {
        /// Full names.
        let source: String
        let target: String
        /// The document itself, if one is copied.
        let document: DocumentPath?
        let place: SubtreeReader.Place

        init(_ from: PlaceWord, _ to: PlaceWord) throws {
            switch (from, to) {
            case (.document(let from), .document(let to)):
                (source, target, document, place) = (from.description, to.description, from, .below(from))
            case (.collection(let from), .collection(let to)):
                (source, target, document, place) = (from.description, to.description, nil, .collection(from))
            default: throw UsageError(message: "FROM and TO must both be documents, or both collections")
            }
            if (target + "/").hasUTF8Prefix(source + "/") || (source + "/").hasUTF8Prefix(target + "/") {
                throw UsageError(message: "FROM and TO are the same or one is within the other")
            }
        }
    }

    private struct Copier {
        let client: HearthClient
        let plan: Plan
        var progress: ProgressLine
        private(set) var count = 0
        /// The source of the last document whose copy is durable.
        private(set) var lastDurable: String?

        init(client: HearthClient, plan: Plan, progress: ProgressLine) {
            self.client = client
            self.plan = plan
            self.progress = progress
        }

        mutating func run(after last: String?) async throws {
            var batches = WriteBatches(client, plan.place.database)
            let inner = last == plan.source ? nil : last
            var reader = try await SubtreeReader(client, plan.place, after: inner)
            if last == nil, let document = plan.document {
                let content = try await client.getDocument(
                    document.description, consistency: reader.consistency)
                if let content { try await add(document.description, content, to: &batches) }
            }
            while case let page = try await reader.next(), !page.isEmpty {
                for document in page { try await add(document.name, document.content, to: &batches) }
                progress.update(documents: count, bytes: 0, totalBytes: nil)
            }
            try await batches.flush()
            progress.clear()
            if count == 0, last == nil { throw CommandFailure("nothing to copy: FROM has no documents") }
        }

        private mutating func add(
            _ name: String, _ content: StoredDocument, to batches: inout WriteBatches
        ) async throws {
            let copy = plan.target + name.dropping(prefix: plan.source)
            if try await batches.add({ $0.set(copy, fields: content.fields) }) { lastDurable = name }
            count += 1
        }
    }
}
