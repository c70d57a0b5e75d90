"""The page's server, asked over a real socket."""

from __future__ import annotations

import http.client
import json
import re

import pytest


def ask(
    address: str, path: str, *, method: str = "GET", headers: dict[str, str] | None = None, body: str | None = None
) -> tuple[int, dict[str, str], bytes]:
    """One request; the path goes out as it is written here."""
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def test_the_page_and_all_its_parts_are_served(replayed: str) -> None:
    """The page needs nothing that does not come from this server."""
    status, headers, page = ask(replayed, "/")
    assert status == 200
    assert "default-src 'self'" in headers["content-security-policy"]
    for part in ("style.css", "app.js", "dom.js", "icon.svg", "panes/segments.js", "panes/faults.js"):
        assert ask(replayed, f"/static/{part}")[0] == 200
    assert b"http://" not in page.replace(b"http://www.w3.org", b"")


def test_the_words_come_in_the_browsers_language(replayed: str) -> None:
    """Issue 24 point 7: what Accept-Language asks for, if the table has it; English otherwise."""
    status, _, body = ask(replayed, "/api/words", headers={"Accept-Language": "ru-RU,ru;q=0.9"})
    assert (status, json.loads(body)["topic"].startswith("тема (topic)")) == (200, True)
    assert json.loads(ask(replayed, "/api/words")[2])["topic"].startswith("topic: ")


def test_a_moment_of_the_run_can_be_asked_for(replayed: str) -> None:
    """A recorded run is shown as it was at any moment, without a cluster."""
    status, _, body = ask(replayed, "/api/view?at=2500&pane=ownership")
    view = json.loads(body)

    assert status == 200
    assert (view["t"], view["first"], view["last"], view["replay"]) == (2000, 1000, 3000, True)
    assert view["lanes"][0]["name"] == "g"


def test_the_stream_begins_with_the_newest_view(replayed: str) -> None:
    """A page that connects is shown the present at once."""
    connection = http.client.HTTPConnection(replayed, timeout=30)
    connection.request("GET", "/api/stream?pane=segments")
    answer = connection.getresponse()
    lines = []
    while not any(line.startswith(b"data: ") for line in lines):
        lines.append(answer.readline())
    connection.close()

    assert json.loads(lines[-1].removeprefix(b"data: "))["t"] == 3000


def test_a_saved_run_is_a_recording(replayed: str) -> None:
    """What "save this run" downloads begins with the recording's header and holds every frame."""
    _, _, body = ask(replayed, "/api/recording")

    assert len(body.splitlines()) == 4
    assert json.loads(body.splitlines()[0])["kafka2011"] == "recording"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_another_host_name_is_refused(replayed: str, host: str) -> None:
    """A page opened under a foreign name (DNS rebinding) gets nothing (reliability: W1)."""
    assert ask(replayed, "/api/view", headers={"Host": host})[0] == 421


@pytest.mark.parametrize(
    "path",
    ["/static/../server.py", "/static/..%2fserver.py", "/static/%2e%2e/server.py", "/static/x%00.js", "/source/os"],
)
def test_no_path_leads_out_of_the_page(replayed: str, path: str) -> None:
    """Nothing but the page's own files is served (reliability: W4)."""
    assert ask(replayed, path)[0] == 404


def test_nothing_changes_by_get_and_all_is_off(replayed: str) -> None:
    """Without --allow-faults and --allow-writes nothing can be changed through the page, never by GET (W2)."""
    wish = json.dumps({"name": "kill-consumer", "target": "consumer-0"})
    headers = {"Content-Type": "application/json", "Origin": f"http://{replayed}"}

    for path in ("/api/fault", "/api/publish", "/api/plan", "/api/move"):
        status, _, body = ask(replayed, path, method="POST", body=wish, headers=headers)
        assert status == 403
        assert "start the observatory with --allow-" in json.loads(body)["error"]
    assert ask(replayed, "/api/fault")[0] == 404
    assert ask(replayed, "/api/view", method="DELETE")[0] == 405


def test_a_recording_holds_no_message_bytes(replayed: str) -> None:
    """Browsing a recording is refused with a sentence, not an error page."""
    status, _, body = ask(replayed, "/api/messages?topic=clicks&partition=0-0&from=begin")

    assert status == 404
    assert "recording" in json.loads(body)["error"]


def test_code_links_open_the_source(replayed: str) -> None:
    """A code link shows the module, escaped, with numbered lines."""
    status, headers, body = ask(replayed, "/source/zk_registry.paths")

    assert status == 200
    assert headers["content-type"].startswith("text/html")
    assert b'id="L1"' in body and b"&lt;broker id&gt;" in body
    assert b'class="sd"' in body, "it is highlighted"
    assert b'href="/#ownership"' in ask(replayed, "/source/zk_registry.paths?back=ownership")[2], "there is a way back"
    assert b"<script" not in ask(replayed, '/source/zk_registry.paths?back="><script>')[2]


def test_no_link_of_a_source_page_leads_nowhere(replayed: str) -> None:
    """Issue 22 B7: every link of every pane, and every link of the pages behind them, is answered."""
    links = json.loads(ask(replayed, "/api/view?pane=segments")[2])["links"]
    sentences = ask(replayed, "/paper?back=segments")[2].decode()
    assert all(f'id="{key}"' in sentences for key in links), "every reference of a pane has its sentence"
    pages = {f"/source/{link['module']}" for link in links.values()} | {"/paper"}
    behind: set[str] = set()
    for path in pages:
        status, _, body = ask(replayed, path)
        assert status == 200, path
        behind |= set(re.findall(r'href="(/[^"#?]+)', body.decode()))

    assert len(behind) > 20
    assert {path: status for path in behind if (status := ask(replayed, path)[0]) != 200} == {}


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/api/view?at=%C2%B2", {}),
        ("/api/view?at=" + "9" * 5000, {}),
        ("/api/view?%ff=1", {}),
        ("/api/view", {"Host": "["}),
    ],
    ids=["superscript", "5,000 digits", "not UTF-8", "half a bracket"],
)
def test_odd_questions_are_400_and_one_line(replayed: str, path: str, headers: dict[str, str]) -> None:
    """Issue 20 C4: what cannot be read is refused with a sentence."""
    status, _, body = ask(replayed, path, headers=headers)

    assert status == 400
    assert json.loads(body)["error"]


@pytest.mark.parametrize(
    ("origin", "body", "status"), [("http://[", "{}", 400), (None, "[" * 9000, 400), (None, "x" * 20_000, 413)],
    ids=["half a bracket", "9,000 brackets", "a large body"],
)  # fmt: skip
def test_odd_wishes_are_refused(wishing: str, origin: str | None, body: str, status: int) -> None:
    """Issue 20 C1, C4: a fault is a small object of this page, whatever its body holds."""
    token = json.loads(ask(wishing, "/api/view?pane=faults")[2])["token"]
    headers = {"Content-Type": "application/json", "Origin": origin or f"http://{wishing}", "X-Token": token}

    assert ask(wishing, "/api/fault", method="POST", body=body, headers=headers)[0] == status
