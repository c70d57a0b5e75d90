"""Ten typical wrong solutions of lab 2, as changes to the model solution. Why they are wrong: lab2/guide.md."""

WRONG = {
    "kept_in_a_buffer": [
        (
            "        self._end = self._bases[-1] + kept\n",
            "        self._end, self._open = self._bases[-1] + kept, {}\n",
        ),
        (
            '        with open(self._path(self._bases[-1]), "ab", buffering=0) as file:\n'
            "            file.write(data)\n",
            "        base = self._bases[-1]\n"
            "        if base not in self._open:\n"
            '            self._open[base] = open(self._path(base), "ab")\n'
            "        self._open[base].write(data)\n",
        ),
    ],
    "names_without_zeros": [('f"{base:020}.kafka"', 'f"{base}.kafka"')],
    "a_new_file_too_late": [("self._bases[-1] >= self._segment_bytes", "self._bases[-1] > self._segment_bytes")],
    "search_from_the_left": [("from bisect import bisect_right", "from bisect import bisect_left as bisect_right")],
    "reads_into_the_next_file": [
        (
            "            return file.read(max_bytes)\n",
            "            data = file.read(max_bytes)\n"
            "        if base != self._bases[-1] and len(data) < max_bytes:\n"
            "            data += self.read(offset + len(data), max_bytes - len(data))\n"
            "        return data\n",
        )
    ],
    "the_end_is_out_of_range": [("<= offset <= self._end", "<= offset < self._end")],
    "a_torn_file_is_emptied": [
        (
            "            kept = tools.intact(file.read())\n",
            "            data = file.read()\n            kept = len(data) if tools.intact(data) == len(data) else 0\n",
        )
    ],
    "every_file_is_cut": [
        (
            "        last = self._path(self._bases[-1])\n",
            "        for base in self._bases:\n"
            '            with open(self._path(base), "ab"), open(self._path(base), "rb") as file:\n'
            "                os.truncate(self._path(base), tools.intact(file.read()))\n"
            "        last = self._path(self._bases[-1])\n",
        )
    ],
    "one_file_too_many_goes": [("self._bases[1] <= offset", "self._bases[0] < offset")],
    "lists_the_directory": [
        (
            "        if not self._bases[0] <= offset",
            "        names = [name for name in os.listdir(self._directory) if 'kafka' in name]\n"
            "        self._bases = sorted(int(name.split('.')[0]) for name in names)\n"
            "        if not self._bases[0] <= offset",
        )
    ],
}
