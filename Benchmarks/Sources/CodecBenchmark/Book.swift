// The book document of the codec's goals: a nested map of three URLs and an array of five tags.

import Foundation

struct Book: Codable, Equatable {
    struct URLs: Codable, Equatable {
        var cover: String
        var preview: String
        var publisher: String
    }
    struct Tag: Codable, Equatable {
        var label: String
        var color: String
    }
    var title: String
    var author: String
    var pages: Int
    var urls: URLs
    var tags: [Tag]
    var published: Date

    /// The same book as in CCodecBounds/codec_bounds.c.
    static let sample = Book(
        title: "The Left Hand of Darkness",
        author: "Ursula K. Le Guin",
        pages: 304,
        urls: URLs(
            cover: "https://books.example/c/8172.png",
            preview: "https://books.example/p/8172",
            publisher: "https://ace.example/titles/8172"),
        tags: [
            Tag(label: "fiction", color: "red"),
            Tag(label: "winter", color: "white"),
            Tag(label: "gender", color: "green"),
            Tag(label: "hainish", color: "indigo"),
            Tag(label: "classic", color: "gold"),
        ],
        published: Date(timeIntervalSince1970: -25_315_199.5))
}
