"""Ten typical wrong solutions of lab 4, as changes to the model solution. Why they are wrong: lab4/guide.md."""

_LOOP = """            while at < end:
                at += os.sendfile(client.fileno(), self.file.fileno(), at, end - at)
"""
_READ = """            self.file.seek(at)
            while at < end:
                part = self.file.read({size})
                client.sendall(part)
                at += len(part)
"""
_EXACTLY = """    got = b""
    while len(got) < n:
        part = client.recv(n - len(got))
        if not part:
            raise NotAFetch
        got += part
"""
_LIST = '        bases = sorted(int(name.split(".")[0]) for name in os.listdir(folder))\n'
_LIST_ONCE = (
    f"        if folder not in LISTED:\n    {_LIST}            LISTED[folder] = bases\n        bases = LISTED[folder]\n"
)
_THREAD = "        threading.Thread(target=talk, args=(client, directory), daemon=True).start()\n"

WRONG = {
    "reads_and_sends": [(_LOOP, _READ.format(size="end - at"))],
    "sends_piece_by_piece": [(_LOOP, _READ.format(size="min(8192, end - at)"))],
    "the_place_in_the_log": [("Piece(OK, file, start, max", "Piece(OK, file, offset, max")],
    "one_client_at_a_time": [(_THREAD, "        talk(client, directory)\n")],
    "one_request_per_connection": [
        ("            while True:\n                (size,)", "            for _ in '1':\n                (size,)")
    ],
    "one_recv_per_request": [(_EXACTLY, "    got = client.recv(n)\n    if not got:\n        raise NotAFetch\n")],
    "the_limit_is_ignored": [("max(0, min(left, limit))", "left")],
    "the_end_is_out_of_range": [("    if left < 0:\n", "    if left <= 0:\n")],
    "files_are_listed_once": [(_LIST, _LIST_ONCE), ("class NotAFetch", "LISTED = {}\n\n\nclass NotAFetch")],
    "names_are_trusted": [('rb"[A-Za-z0-9_-]+"', 'rb".+"')],
}
