"""LevelDB logs in plain Python: an independent reader and writer."""

BLOCK = 32768
HEADER = 7

_TABLE = []
for _byte in range(256):
    _remainder = _byte
    for _ in range(8):
        _remainder = _remainder >> 1 ^ (0x82F63B78 if _remainder & 1 else 0)
    _TABLE.append(_remainder)


def masked_checksum(data):
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder = remainder >> 8 ^ _TABLE[(remainder ^ byte) & 0xFF]
    checksum = remainder ^ 0xFFFFFFFF
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """The records of a log; raises ValueError for damage."""
    position, record = 0, None
    while position < len(data):
        room = BLOCK - position % BLOCK
        if room < HEADER:
            position += room
            continue
        stored = int.from_bytes(data[position : position + 4], "little")
        length = int.from_bytes(data[position + 4 : position + 6], "little")
        kind = data[position + 6]
        part = data[position + HEADER : position + HEADER + length]
        if len(part) != length or masked_checksum(bytes([kind]) + part) != stored:
            raise ValueError(f"damage at byte {position}")
        position += HEADER + length
        if kind in (1, 2):
            record = part
        else:
            record += part
        if kind in (1, 4):
            yield record
            record = None


def log(all_records):
    """The bytes of a log with these records."""
    output = bytearray()
    for record in all_records:
        start, first = 0, True
        while True:
            room = BLOCK - len(output) % BLOCK
            if room < HEADER:
                output += bytes(room)
                room = BLOCK
            end = min(len(record), start + room - HEADER)
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[first, end == len(record)]
            part = record[start:end]
            output += masked_checksum(bytes([kind]) + part).to_bytes(4, "little")
            output += len(part).to_bytes(2, "little") + bytes([kind]) + part
            start, first = end, False
            if start == len(record):
                break
    return bytes(output)
