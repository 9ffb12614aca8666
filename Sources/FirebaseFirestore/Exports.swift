// What `import FirebaseFirestore` brings in besides this module: the document values and coders, the app, and
// Foundation, as the Apple SDK does.

@_exported public import DocumentCoding
@_exported public import FirebaseCore
@_exported public import Foundation
