"""Ten typical wrong solutions of lab 5, as changes to the model solution. Why they are wrong: lab5/guide.md."""

WRONG = {
    "the_id_node_stays": [
        ("self._zk.create(path, value.encode(), True)", 'self._zk.create(path, value.encode(), "owners" in path)')
    ],
    "sorted_as_text": [
        (
            '        return [f"{broker}-{number}" for broker, number in sorted(found)]\n',
            '        return sorted(f"{broker}-{number}" for broker, number in found)\n',
        )
    ],
    "every_topic_counts": [(" if topic == self._topic)", ")")],
    "looks_before_it_claims": [
        (
            '        is_mine = self._make(f"{self._owners}/{partition}", self._id)\n',
            '        path = f"{self._owners}/{partition}"\n'
            "        if asked(lambda: self._zk.exists(path)) is not None:\n            return False\n"
            "        is_mine = self._make(path, self._id)\n",
        )
    ],
    "releases_whatever_is_there": [
        (
            "        if asked(lambda: self._zk.exists(path)) == self._zk.session():\n",
            "        if asked(lambda: self._zk.exists(path)) is not None:\n",
        )
    ],
    "a_node_that_goes_is_an_error": [
        (
            "            except NoNode:\n                continue\n",
            "            except NoNode:\n                raise RuntimeError(name)\n",
        )
    ],
    "watches_after_reading": [
        (
            "            names = asked(lambda: self._zk.children(path, True))\n",
            "            names = asked(lambda: self._zk.children(path))\n"
            "            asked(lambda: self._zk.children(path, True))\n",
        )
    ],
    "counts_are_not_watched": [("self._values(self._brokers, True)", "self._values(self._brokers, False)")],
    "a_lost_answer_is_a_no": [
        ("                return owner == self._zk.session()", "                return False"),
    ],
    "claims_outlive_the_session": [("        self._claims.clear()\n", "")],
}
