"""Ten typical wrong solutions of lab 6, as changes to the model solution. Why they are wrong: lab6/guide.md."""

_STOP = """            stopped = yield Stop()
            self.reading.clear()
            yield from self.commit(stopped)
"""
_COMMIT = "            yield from self.commit(stopped)\n"
_RELEASE = "            yield from self.release()\n            mine = yield from self.share()\n"
_DELETE = '            yield from self.ask(DeleteIfMine(f"{self.owners}/{partition}"))\n            self.intended'
_DELETE_ALL = """            try:
                yield from self.ask(Delete(f"{self.owners}/{partition}"))
            except NoNode:
                pass
            self.intended"""
_OFFSET = "                    start[partition] = yield from self.offset(partition)\n"
_NAMES = "self.ask(Children(path, True))"
_COUNT = 'self.value(f"{self.topics}/{broker}", True)'

WRONG = {
    "whole_number_shares": [("ordered[j * p // c : (j + 1) * p // c]", "ordered[j * (p // c) : (j + 1) * (p // c)]")],
    "stops_too_late": [
        (_STOP, "            yield from self.commit((yield Progress()))\n"),
        ("                yield Start(start)\n", "                yield Stop()\n                yield Start(start)\n"),
    ],
    "nothing_stored_at_a_rebalance": [(_COMMIT, "")],
    "a_lost_session_is_the_end": [("                yield NewSession()\n", "                return\n")],
    "ids_are_not_watched": [(_NAMES, 'self.ask(Children(path, "ids" not in path))')],
    "counts_are_not_watched": [(_COUNT, _COUNT.replace("True", "False"))],
    "stores_only_at_a_rebalance": [
        ("                yield from self.commit((yield Progress()))\n", "                pass\n")
    ],
    "deletes_what_is_there": [(_DELETE, _DELETE_ALL), ("    DeleteIfMine,\n", "    Delete,\n    DeleteIfMine,\n")],
    "stores_after_releasing": [
        (_COMMIT, ""),
        (_RELEASE, _RELEASE.replace("            mine", f"{_COMMIT}            mine")),
    ],
    "starts_at_the_beginning": [(_OFFSET, "                    start[partition] = 0\n")],
}
