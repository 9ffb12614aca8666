# From proto/ to the form in which the program holds messages: the same bytes on the wire, with strings as bytes, which have a
# length and may contain NUL, and as bytes also maps and the messages that our own readers take, because they belong to
# requests and results that are read in place. Outside of a oneof such a message is repeated, so that empty differs from absent;
# the last one counts.
# Run by Tools/generate-proto.
# Of the admin API every message within a message is bytes.
/^package google\.\(firestore\.admin\.v1\|longrunning\);/,${
s/^\( *\)\(google\.[a-z.]*\.\(Any\|Status\|FieldMask\|Duration\|Timestamp\)\) \([a-z_]* = [0-9]*;\)/\1HELD \4/
s/^\( *\)\(Index\|Field\|IndexConfig\|TtlConfig\|VectorConfig\|Search[A-Za-z]*\|Database\) \([a-z_]* = [0-9]*;\)/\1HELD \3/
s/^\( *\)repeated \(Index\|IndexField\|SearchTextIndexSpec\|Field\|Database\|Operation\) \([a-z_]* = [0-9]*;\)/\1repeated bytes \3/
/^ *oneof /,/^ *}/s/HELD/bytes/
s/HELD/repeated bytes/
}
s/^package google\.firestore\.admin\.v1;/package held.firestore_admin;/
s/^package google\.longrunning;/package held.longrunning;/
s/^package google\.protobuf;/package held.protobuf;/
s/^package google\.firestore\.v1;/package held;/
s/^package grpc\.health\.v1;/package held.health;/
s/^package grpc\.reflection\.v1;/package held.reflection;/
s/^package hearth\.admin\.v1;/package held.admin;/
s/^\( *\)map<[^>]*> /\1repeated bytes /
s/^\( *\(repeated \)\{0,1\}\)string \([a-z_]* = [0-9]*;\)/\1bytes \3/
/^ *oneof /,/^ *}/{
s/^\( *\)\(Value\|Document\|DocumentMask\|Precondition\|TransactionOptions\|StructuredQuery\|StructuredAggregationQuery\|Cursor\) \([a-z_]* = [0-9]*;\)/\1bytes \3/
}
s/^\( *\)\(Value\|Document\|DocumentMask\|Precondition\|TransactionOptions\|StructuredQuery\|StructuredAggregationQuery\|Cursor\|KeptRules\) \([a-z_]* = [0-9]*;\)/\1repeated bytes \3/
s/^\( *\)repeated \(Value\|Document\|Cursor\|Index\|IndexField\|FieldOverride\|SingleFieldIndex\|ListedIndex\|KeptRules\) \([a-z_]* = [0-9]*;\)/\1repeated bytes \3/
/^service /,/^}/d
