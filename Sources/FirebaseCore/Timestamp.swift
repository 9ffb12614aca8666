// `Timestamp` is part of FirebaseCore in the Apple SDK; here it lives with the other document values.

@_exported public import class DocumentCoding.Timestamp
