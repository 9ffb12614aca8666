// Scores by BM25, with the fields of an index taken together (BM25F).
//
//     idf(word)     ln(1 + (N - n + 0.5) / (n + 0.5))          N documents have words, n of them this one
//     tf(word)      sum over fields of  count / (1 - b + b * length / average length)
//     score         sum over words of  idf * tf / (k + tf)      k = 1.2, b = 0.75
//
// A score is not negative, and each word adds less than its idf. The words of a search for first letters count as one
// word.

internal import Glibc
internal import Indexing

struct SearchScore: Sendable {
    private let counts: SearchCounts

    private static let saturation = 1.2
    private static let lengthWeight = 0.75

    init(_ counts: SearchCounts) { self.counts = counts }

    /// The weight of a word that occurs in a number of documents.
    func weight(documents: Int) -> Double {
        let (all, some) = (Double(max(counts.documents, Int64(documents))), Double(documents))
        return log1p((all - some + 0.5) / (some + 0.5))
    }

    /// What the occurrences in one field add to a word's frequency.
    func frequency(_ field: SearchPosting.Field) -> Double {
        guard counts.fields.indices.contains(field.field), field.count > 0 else { return 0 }
        let total = counts.fields[field.field]
        let average = total.documents > 0 ? Double(total.words) / Double(total.documents) : Double(field.length)
        let length = average > 0 ? Double(field.length) / average : 1
        return Double(field.count) / (1 - Self.lengthWeight + Self.lengthWeight * length)
    }

    /// What a word adds to a document's score.
    func score(weight: Double, frequency: Double) -> Double {
        weight * frequency / (Self.saturation + frequency)
    }
}
