// Field numbers of the messages in a managed export. Source: the published descriptor google.appengine.entity_bytes.
// Never change.

/// `EntityProto`: a document, or a map within one.
enum EntityField {
    static let key = 13
    static let property = 14
    static let rawProperty = 15
    static let entityGroup = 16
}

/// `Reference`: the key of an entity. The group `ReferenceValue` has the same numbers for all but the path.
enum ReferenceField {
    static let app = 13
    static let path = 14
    static let namespace = 20
    static let databaseID = 23
}

/// The group of `Path`: a collection and an id.
enum PathElementField {
    static let element = 1
    static let kind = 2
    static let id = 3
    static let name = 4
}

/// The group of `ReferenceValue`: a collection and an id.
enum ReferenceElementField {
    static let element = 14
    static let kind = 15
    static let id = 16
    static let name = 17
}

/// `Property`: a field, or an element of an array.
enum PropertyField {
    static let meaning = 1
    static let name = 3
    static let multiple = 4
    static let value = 5
}

/// `PropertyValue`; point, user and reference are groups.
enum PropertyValueField {
    static let integer = 1
    static let boolean = 2
    static let string = 3
    static let double = 4
    static let point = 5
    static let pointLatitude = 6
    static let pointLongitude = 7
    static let user = 8
    static let userEmail = 9
    static let reference = 12
}

/// What a value means beside its type in the message.
enum Meaning {
    static let time = 7
    static let point = 9
    static let bytes = 14
    static let text = 15
    static let byteString = 16
    static let blobKey = 17
    static let indexValue = 18
    static let map = 19
    static let emptyArray = 24
    static let vector = 31
}

/// The message of `....overall_export_metadata`, and that of a part in it.
enum OverallField {
    static let part = 1
    static let numbers = 1
    static let path = 2
    static let entities = 3
    static let byteCount = 4
}

/// The message of `....export_metadata`, and those of the export and of a data file in it.
enum PartField {
    static let export = 1
    static let name = 1
    static let start = 2
    static let end = 3
    static let file = 2
    static let fileNamespace = 1
    static let fileName = 2
}
