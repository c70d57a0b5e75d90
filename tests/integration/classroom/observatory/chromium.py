"""Headless Chromium, driven over its DevTools pipe: two file descriptors and JSON, no other package."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from kafka2011.child import die_with_parent
from tests.waiting import until

PATIENCE_S = 60.0
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--mute-audio",
    "--remote-debugging-pipe",
]


def find_chromium() -> str | None:
    """The browser of the system, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Chromium:
    """One browser with one page. Collects what the page complains of and every address it asks for. Thread: one."""

    def __init__(self, directory: Path, *, width: int = 1280, height: int = 800) -> None:
        command = find_chromium()
        assert command is not None
        # Chromium reads commands from descriptor 3 and writes answers to 4, each message ended by a zero byte.
        commands, self._to = os.pipe()
        self._from, answers = os.pipe()
        # High numbers first: 3 or 4 may be one of the pipes' own ends.
        theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, 100) for end in (commands, answers)]
        flags = [*_FLAGS, f"--user-data-dir={directory}", f"--window-size={width},{height}", "about:blank"]
        shell = f'exec "$0" "$@" 3<&{theirs[0]} 4>&{theirs[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, command, *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=theirs,
            preexec_fn=die_with_parent,
        )
        for end in (commands, answers, *theirs):
            os.close(end)
        self._buffer, self._number = b"", 0
        self.complaints: list[str] = []
        self.requested: list[str] = []
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        self._session = None
        self.call("Browser.close")  # its helpers end with it, and nothing writes to the directory any more
        self._process.wait(PATIENCE_S)
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One DevTools command and its answer; what the page says meanwhile is collected."""
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._to, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while True:
            message = self._next(deadline)
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message['error']}"
                result: dict[str, Any] = message["result"]
                return result
            self._collect(message)

    def open(self, address: str) -> None:
        """Go there; return when the page has drawn something."""
        # From a blank page: only the part after # may differ, and then nothing would be loaded.
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank' && document.readyState === 'complete'", "the page is blank")
        self.call("Page.navigate", url=address)
        self.wait("document.querySelector('#pane')?.children.length > 0", f"{address} shows something")

    def js(self, expression: str) -> Any:
        """The value of an expression in the page (awaited if it is a promise)."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait(self, expression: str, what: str) -> Any:
        """Wait until an expression in the page is true."""
        return until(lambda: self.js(expression), what)

    def click(self, selector: str) -> None:
        """Click an element as a hand would, after it has appeared."""
        quoted = json.dumps(selector)
        self.wait(f"document.querySelector({quoted}) !== null", f"there is a {selector}")
        self.js(f"document.querySelector({quoted}).dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")

    def press(self, key: str) -> None:
        """Press a key on whatever has the focus."""
        self.js(f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: {key!r}, bubbles: true}}))")

    def text(self, selector: str = "body") -> str:
        """What one reads there."""
        return str(self.js(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def picture(self, path: Path) -> None:
        """Save what one sees as a PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(deadline - time.monotonic(), 0))
            data = os.read(self._from, 1 << 20) if ready else b""
            assert data, "Chromium does not answer" if not ready else "Chromium went away"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _collect(self, message: dict[str, Any]) -> None:
        details = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(details["exceptionDetails"])[:500])
            case "Runtime.consoleAPICalled" if details["type"] in ("error", "warning", "assert"):
                self.complaints.append(json.dumps(details["args"])[:500])
            case "Log.entryAdded" if details["entry"]["level"] in ("error", "warning"):
                self.complaints.append(json.dumps(details["entry"])[:500])
            case "Network.requestWillBeSent":
                self.requested.append(details["request"]["url"])
