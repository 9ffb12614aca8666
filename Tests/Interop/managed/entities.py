"""Entities of exports with Google's own messages (entity_bytes_pb2 of appengine-python-standard), and REST values."""

import base64
import datetime

from google.appengine.datastore import entity_bytes_pb2

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def path_of(elements, id_field="id", name_field="name"):
    """`users/ada` for the elements of a key or a reference."""
    parts = []
    for element in elements:
        parts += [element.type, element.name if element.HasField(name_field) else f"__id{element.id}__"]
    return "/".join(parts)


def documents(records):
    """The documents of an export's records: {path: {field: REST value}}."""
    found = {}
    for record in records:
        entity = entity_bytes_pb2.EntityProto.FromString(record)
        assert entity.entity_group.element == entity.key.path.element[:1], "the entity group is the first element"
        found[path_of(entity.key.path.element)] = fields(entity)
    return found


def fields(entity):
    grouped = {}
    for property in list(entity.property) + list(entity.raw_property):
        grouped.setdefault(property.name, []).append(property)
    return {name: field(properties) for name, properties in grouped.items()}


def field(properties):
    first = properties[0]
    if not first.multiple:
        assert len(properties) == 1, "a field occurs once"
        if first.meaning == 24:
            return {"arrayValue": {}}
        return value(first)
    values = [value(property) for property in properties]
    if meaning(first) == 31:
        vector = {"__type__": {"stringValue": "__vector__"}, "value": {"arrayValue": {"values": values}}}
        return {"mapValue": {"fields": vector}}
    return {"arrayValue": {"values": values}}


def meaning(property):
    """The meaning, also one that the published enumeration lacks: such a number is an unknown field."""
    if property.meaning:
        return property.meaning
    data = property.SerializeToString()
    # The vector's 31 is kept as the field 1 with a varint.
    return 31 if b"\x08\x1f" in (data[:2], data[-2:]) else 0


def value(property):
    content, kind = property.value, meaning(property)
    if content.HasField("booleanValue"):
        return {"booleanValue": content.booleanValue}
    if content.HasField("doubleValue"):
        return {"doubleValue": content.doubleValue}
    if content.HasField("int64Value"):
        if kind == 7:
            return {"timestampValue": (EPOCH + datetime.timedelta(microseconds=content.int64Value)).isoformat()}
        return {"integerValue": str(content.int64Value)}
    if content.HasField("stringValue"):
        if kind == 14:
            return {"bytesValue": base64.b64encode(content.stringValue).decode()}
        if kind == 19:
            inner = entity_bytes_pb2.EntityProto.FromString(content.stringValue)
            return {"mapValue": {"fields": fields(inner)}}
        return {"stringValue": content.stringValue.decode()}
    if content.HasField("pointvalue"):
        return {"geoPointValue": {"latitude": content.pointvalue.x, "longitude": content.pointvalue.y}}
    if content.HasField("referencevalue"):
        reference = content.referencevalue
        project = reference.app.split("~")[-1]
        database = reference.database_id or "(default)"
        path = path_of(reference.pathelement)
        return {"referenceValue": f"projects/{project}/databases/{database}/documents/{path}"}
    return {"nullValue": None}


def normal(value):
    """A REST value in the one form in which both servers and this module are compared."""
    (kind, content), = value.items()
    if kind == "mapValue":
        return {kind: {name: normal(inner) for name, inner in content.get("fields", {}).items()}}
    if kind == "arrayValue":
        return {kind: [normal(inner) for inner in content.get("values", [])]}
    if kind == "doubleValue":
        # NaN is not equal to itself; the emulator has no negative zero.
        number = float(content)
        return {kind: repr(number + 0.0) if number else "0"}
    if kind == "integerValue":
        return {kind: int(content)}
    if kind == "timestampValue":
        return {kind: microseconds(content)}
    if kind == "geoPointValue":
        return {kind: [float(content.get("latitude", 0)) + 0.0, float(content.get("longitude", 0)) + 0.0]}
    return value


def microseconds(text):
    """Microseconds since 1970 of an RFC 3339 time in UTC, rounded down."""
    text = text.removesuffix("Z").removesuffix("+00:00")
    whole, _, fraction = text.partition(".")
    time = datetime.datetime.fromisoformat(whole + "+00:00") - EPOCH
    return (time.days * 86400 + time.seconds) * 1_000_000 + int((fraction + "000000")[:6])


def entity(project, path, add, **key):
    """An entity as other programs write it: `add` adds properties."""
    message = entity_bytes_pb2.EntityProto()
    message.key.app = f"s~{project}"
    for name, content in key.items():
        setattr(message.key, name, content)
    segments = path.split("/")
    for kind, id in zip(segments[::2], segments[1::2]):
        element = message.key.path.element.add(type=kind)
        if id.startswith("__id"):
            element.id = int(id[4:-2])
        else:
            element.name = id
    message.entity_group.element.add().CopyFrom(message.key.path.element[0])
    add(message)
    return message.SerializeToString()
