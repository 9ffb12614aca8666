// A module of older SDK versions that held the Codable support, which is now part of FirebaseFirestore. It stays so
// that `import FirebaseFirestoreSwift` compiles.

@_exported public import FirebaseFirestore
