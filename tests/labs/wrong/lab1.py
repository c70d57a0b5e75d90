"""Ten typical wrong solutions of lab 1, as changes to the model solution. Why they are wrong: lab1/guide.md."""

WRONG = {
    "crc_covers_magic": [
        ('struct.pack(">BI", 0, zlib.crc32(payload))', 'struct.pack(">BI", 0, zlib.crc32(b"\\0" + payload))')
    ],
    "start_forgotten": [("(payload, start + end)", "(payload, end)")],
    "a_torn_tail_is_damage": [("            return\n        yield", "            raise Damaged(at)\n        yield")],
    "crc_not_checked": [('if int.from_bytes(crc, "big") != zlib.crc32(payload):', "if len(crc) != 4:")],
    "damage_is_silent": [("        raise Damaged(start + error.offset) from None\n", "        print(error)\n")],
    "damage_without_start": [("raise Damaged(start + error.offset)", "raise Damaged(error.offset)")],
    "magic_not_looked_at": [
        (
            "    if magic == 1 and len(body) >= 6:\n        attributes, head = body[1], 2\n    elif magic != 0:\n",
            "    if magic > 1:\n",
        )
    ],
    "crc_covers_attributes": [("!= zlib.crc32(payload)", "!= zlib.crc32(body[1:head] + payload)")],
    "inflates_everything": [("inflater.decompress(packed, LARGEST_SET + 1)", "inflater.decompress(packed)")],
    "small_sizes_walk_on": [("        if size < 5:\n            raise Damaged(at)\n", "")],
}
