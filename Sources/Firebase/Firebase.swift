// The umbrella module: `import Firebase` brings in everything there is.

@_exported public import FirebaseCore
@_exported public import FirebaseFirestore
