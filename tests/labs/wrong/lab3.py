"""Ten typical wrong solutions of lab 3, as changes to the model solution. Why they are wrong: lab3/guide.md."""

WRONG = {
    "everything_is_visible": [
        ("        return self._flushed\n", "        return self._end\n"),
        ("max_bytes, self._flushed)", "max_bytes, self._end)"),
    ],
    "one_message_too_late": [("self._n_waiting >= self._flush_messages", "self._n_waiting > self._flush_messages")],
    "every_message_is_flushed": [("        if self._n_waiting >= self._flush_messages:\n", "        if True:\n")],
    "no_flush_of_the_directory": [("        disk.fsync_directory()\n", "")],
    "opening_trusts_the_cache": [
        ("        disk.fsync(NAME)\n        disk.fsync_directory()", "        disk.fsync_directory()")
    ],
    "the_tail_is_not_cut": [("            disk.truncate(NAME, self._end)\n", "            pass\n")],
    "the_crc_is_not_asked": [("        self._end = tools.intact(data)\n", "        self._end = len(data)\n")],
    "time_since_the_last_message": [
        (
            "        if not self._n_waiting:\n            self._waiting_since",
            "        if True:\n            self._waiting_since",
        )
    ],
    "a_failed_flush_is_tried_again": [
        ("            self._failed = True\n", ""),
        ('        if self._failed:\n            raise DiskFailed("an earlier flush failed")\n', "        pass\n"),
    ],
    "reading_ignores_the_mark": [("offset : min(offset + max_bytes, self._flushed)", "offset : offset + max_bytes")],
}
