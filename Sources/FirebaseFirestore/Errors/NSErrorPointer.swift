// Foundation on Linux lacks `NSErrorPointer`, which transaction blocks take.

public import Foundation

#if !canImport(ObjectiveC)
    /// Where a transaction block stores the error that abandons the transaction: `errorPointer?.pointee = error`.
    public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?
#endif
