internal import Storage

/// A part of a run's file that is verified as a whole.
enum ColdPlace: Hashable, Sendable {
    /// A block of a file of entries, or a page of an LMDB file.
    case block(offset: Int, bit: Int)
    /// Pages of an LMDB file.
    case pages(ClosedRange<Int>)
    /// A page of the hash index.
    case hashPage(Int)
    /// A page of the records beside an LMDB file.
    case records(Int)
    /// Bytes of the file with the data that are likely to be read next; nobody waits for them.
    case ahead(Range<Int>)
}

/// A place in a file, which may have been merged and removed since.
struct ColdPage: Hashable, Sendable {
    /// The number of the file.
    let file: UInt64
    let place: ColdPlace
}

/// What reads do that meet places which are not in memory: they wait, or note the place and are pending. A plain
/// address, which is passed down with each search; the notes belong to the thread of a reader.
@safe
struct ColdReads: @unchecked Sendable {  // Used by the thread of the reader.
    /// The notes of one reader.
    struct Notes {
        var pages: [ColdPage] = []
        /// For tests: places that were not read yet count as not in memory.
        let meetsPagesCold: Bool
    }

    private let notes: UnsafeMutablePointer<Notes>?

    /// Reads wait.
    static let wait = unsafe ColdReads(notes: nil)

    /// - Parameter notes: valid for as long as the reads.
    init(notes: UnsafeMutablePointer<Notes>?) { unsafe self.notes = unsafe notes }

    /// Whether reads are pending rather than wait.
    @inline(__always)
    var pends: Bool { unsafe notes != nil }

    var meetsPagesCold: Bool { unsafe notes?.pointee.meetsPagesCold ?? false }

    /// Places that a reader notes at most, between two calls of `whenReady`. Further ones are met again.
    private static let pagesMax = 1024

    /// Notes a place.
    func note(_ place: ColdPlace, in file: UInt64) {
        guard let notes = unsafe notes, unsafe notes.pointee.pages.count < Self.pagesMax else { return }
        unsafe notes.pointee.pages.append(ColdPage(file: file, place: place))
    }
}
