// The parts of an entity, in place.

internal import Basics
internal import DocumentModel

/// One property: a field of the document, or an element of an array.
struct EntityProperty {
    /// Where its parts are in the bytes of the entity.
    var name: Range<Int>
    /// A `PropertyValue` message.
    var value: Range<Int>
    var meaning = 0
    var isMultiple = false
}

/// The key and the properties of an entity.
struct EntityContents {
    /// A `Reference` message; nil if there is none.
    private(set) var key: Range<Int>?
    /// Those of both lists, sorted by the UTF-8 bytes of their names; those of one name in the order of the entity.
    private(set) var properties: [EntityProperty] = []

    init(_ entity: RawSpan) throws {
        var reader = WireReader(entity)
        var isSorted = true
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case EntityField.key:
                let bytes = try reader.span(tag)
                key = (reader.position - bytes.byteCount)..<reader.position
            case EntityField.property, EntityField.rawProperty:
                let bytes = try reader.span(tag)
                let property = try Self.property(bytes, at: reader.position - bytes.byteCount)
                if isSorted, let last = properties.last {
                    isSorted = Self.compare(last, property, entity) <= 0
                }
                properties.append(property)
            default: try reader.skipField(tag)
            }
        }
        if !isSorted { sort(entity) }
    }

    private static func compare(_ left: EntityProperty, _ right: EntityProperty, _ entity: RawSpan) -> Int {
        entity.extracting(left.name).compareBytes(entity.extracting(right.name))
    }

    private mutating func sort(_ entity: RawSpan) {
        let order = properties.indices.sorted { left, right in
            let order = Self.compare(properties[left], properties[right], entity)
            return order != 0 ? order < 0 : left < right
        }
        properties = order.map { properties[$0] }
    }

    /// - Parameter start: where the message begins in the entity.
    private static func property(_ bytes: RawSpan, at start: Int) throws -> EntityProperty {
        var reader = WireReader(bytes)
        var name: Range<Int>?
        var property = EntityProperty(name: 0..<0, value: 0..<0)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case PropertyField.meaning: property.meaning = Int(try reader.int64(tag))
            case PropertyField.multiple: property.isMultiple = try reader.boolean(tag)
            case PropertyField.name:
                let text = try reader.span(tag)
                name = (start + reader.position - text.byteCount)..<(start + reader.position)
            case PropertyField.value:
                let value = try reader.span(tag)
                property.value = (start + reader.position - value.byteCount)..<(start + reader.position)
            default: try reader.skipField(tag)
            }
        }
        guard let name else { throw EntityProblem("a property has no name") }
        property.name = name
        return property
    }
}

/// What a `PropertyValue` message holds; ranges are in its bytes.
enum PropertyContent {
    case null
    case integer(Int64)
    case boolean(Bool)
    case string(Range<Int>)
    case double(Double)
    case point(GeoPointValue)
    /// The user's email address.
    case user(Range<Int>)
    /// The contents of the group.
    case reference(Range<Int>)

    init(_ bytes: RawSpan) throws {
        self = .null
        var reader = WireReader(bytes)
        while let tag = try reader.nextTag() {
            switch tag.rawValue {
            case WireTag(field: PropertyValueField.integer, .varint).rawValue:
                self = .integer(try reader.int64(tag))
            case WireTag(field: PropertyValueField.boolean, .varint).rawValue:
                self = .boolean(try reader.boolean(tag))
            case WireTag(field: PropertyValueField.string, .lengthDelimited).rawValue:
                let text = try reader.span(tag)
                self = .string((reader.position - text.byteCount)..<reader.position)
            case WireTag(field: PropertyValueField.double, .fixed64).rawValue:
                self = .double(try reader.double(tag))
            case WireTag(field: PropertyValueField.point, .startGroup).rawValue:
                self = .point(try Self.point(try reader.group(tag)))
            case WireTag(field: PropertyValueField.user, .startGroup).rawValue:
                let start = reader.position
                let email = try Self.email(try reader.group(tag))
                self = .user((start + email.lowerBound)..<(start + email.upperBound))
            case WireTag(field: PropertyValueField.reference, .startGroup).rawValue:
                let start = reader.position
                let group = try reader.group(tag)
                self = .reference(start..<(start + group.byteCount))
            default: try reader.skipField(tag)
            }
        }
    }

    private static func point(_ group: RawSpan) throws -> GeoPointValue {
        var reader = WireReader(group)
        var point = GeoPointValue(latitude: 0, longitude: 0)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case PropertyValueField.pointLatitude: point.latitude = try reader.double(tag)
            case PropertyValueField.pointLongitude: point.longitude = try reader.double(tag)
            default: try reader.skipField(tag)
            }
        }
        return point
    }

    private static func email(_ group: RawSpan) throws -> Range<Int> {
        var reader = WireReader(group)
        var email = 0..<0
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == PropertyValueField.userEmail {
                let text = try reader.span(tag)
                email = (reader.position - text.byteCount)..<reader.position
            } else {
                try reader.skipField(tag)
            }
        }
        return email
    }
}
