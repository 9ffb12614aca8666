// What `import FirebaseFirestore` brings in besides this module: the document values and coders, and the app.

@_exported public import DocumentCoding
@_exported public import FirebaseCore
