// What `import FirebaseCore` brings in besides this module. `Timestamp` is part of FirebaseCore in the Apple SDK; here
// it lives with the other document values. Foundation comes along as in the Apple SDK.

@_exported public import Foundation

@_exported public import class DocumentCoding.Timestamp
