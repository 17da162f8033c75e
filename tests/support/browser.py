"""A page in headless Chromium, with real keys, media and sizes, by the DevTools protocol over a pipe."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

QUIET = ("--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update")

_KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    " ": (32, " "),
    "ArrowUp": (38, ""),
    "ArrowDown": (40, ""),
    "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""),
}
"""Key -> its code in Windows, which the protocol asks for, and the text that it types."""


class Page:
    """An open page."""

    def __init__(self, read: int, write: int) -> None:
        self._answers, self._calls = os.fdopen(read, "rb"), os.fdopen(write, "wb")
        self._number, self._target, self._session = 0, "", ""

    def open(self, address: str) -> None:
        """Opens a page in a new tab, in the place of the one that is open, and waits until it is loaded."""
        before, self._session = self._target, ""
        self._target = self._call("Target.createTarget", url="about:blank")["targetId"]
        if before:
            self._call("Target.closeTarget", targetId=before)
        self._session = self._call("Target.attachToTarget", targetId=self._target, flatten=True)["sessionId"]
        self._call("Page.enable")
        self.load(address)

    def load(self, address: str) -> None:
        """Loads a page in the place of the one that is open, and waits until it is complete."""
        self._call("Page.navigate", url=address)
        loaded = "document.readyState === 'complete' ? done(1) : addEventListener('load', () => done(1))"
        self.value(f"new Promise((done) => {loaded})")

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON can hold it; a promise is waited for."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, *keys: str) -> None:
        """Presses keys one after the other."""
        for key in keys:
            code, text = _KEYS[key]
            named = {"key": key, "code": key, "windowsVirtualKeyCode": code, "text": text}
            self._call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **named)
            self._call("Input.dispatchKeyEvent", type="keyUp", **named)

    def write(self, text: str) -> None:
        """Types a text where the focus is."""
        self._call("Input.insertText", text=text)

    def size(self, width: int, height: int) -> None:
        """Makes the window as large as this, in CSS pixels."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, name: str = "", **features: str) -> None:
        """Shows the page for a medium, such as print, and with features such as `prefers_color_scheme`."""
        listed = [{"name": key.replace("_", "-"), "value": value} for key, value in features.items()]
        self._call("Emulation.setEmulatedMedia", media=name, features=listed)

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self._call("Page.printToPDF")["data"])

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        session = {"sessionId": self._session} if self._session else {}
        call = {"id": self._number, "method": method, "params": parameters, **session}
        self._calls.write(json.dumps(call).encode() + b"\0")
        self._calls.flush()
        for answer in self._messages():
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])
        raise AssertionError(f"the browser ended before it answered {method}")

    def _messages(self) -> Iterator[dict[str, Any]]:
        message = bytearray()
        while byte := self._answers.read(1):
            if byte == b"\0":
                yield json.loads(bytes(message))
                message.clear()
            else:
                message += byte


@contextmanager
def opened(address: str, folder: Path) -> Iterator[Page]:
    """A page at an address; skips the test where there is no Chromium."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    options = [*QUIET, "--headless", "--no-sandbox", "--remote-debugging-pipe", f"--user-data-dir={folder / 'user'}"]
    # The protocol's pipes are file descriptors 3 and 4.
    script = f'exec "$@" 3<&{in_read} 4>&{out_write}'
    process = subprocess.Popen(
        ["bash", "-c", script, "bash", CHROMIUM, *options],
        pass_fds=(in_read, out_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(in_read)
    os.close(out_write)
    page = Page(out_read, in_write)
    try:
        page.open(address)
        yield page
    finally:
        process.kill()
        process.wait(timeout=30)


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def in_browser(page: str, script: str, folder: Path) -> str:
    """The page's content after a script ran in it."""
    file = folder / "page.html"
    file.write_text(with_script(page, script), encoding="utf-8")
    return browse(file.as_uri(), folder)


def with_script(page: str, script: str) -> str:
    """The page with one more script, which its policy allows by its hash beside the page's own."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = page.replace("script-src '", f"script-src 'sha256-{digest}' '", 1)
    assert allowed != page
    return allowed.replace("</body>", f"<script>{script}</script></body>")


def browse(address: str, folder: Path, *options: str) -> str:
    """The content of what is at an address."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    command = [CHROMIUM, "--headless", "--no-sandbox", *QUIET, f"--user-data-dir={folder / 'user'}", "--dump-dom"]
    shown = subprocess.run([*command, *options, address], capture_output=True, text=True, timeout=120, check=True)
    return shown.stdout
