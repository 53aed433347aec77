"""The built site in a browser: every page shows, and none asks anybody but the server it is on.

`make docs` builds it and names it by `--site`.
"""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAGES = (
    "index.html",
    "start/first-answers.html",
    "concepts.html",
    "functions.html",
    "python/api.html",
    "benchmarks/index.html",
)
_URL_REQUEST = "URL_REQUEST_START_JOB"


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Path:
    folder = request.config.getoption("--site")
    if folder is None:
        pytest.skip("no site to look at: make docs builds one and names it by --site")
    return Path(str(folder))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium: apt install chromium")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_a_page_asks_only_its_own_server(browser: str, address: str, page: str, tmp_path: Path) -> None:
    log = tmp_path / "net.json"
    command = [
        *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
        *("--disable-background-networking", "--disable-component-update", "--disable-extensions"),
        *(f"--user-data-dir={tmp_path / 'profile'}", f"--log-net-log={log}", "--virtual-time-budget=3000"),
        *("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--dump-dom", f"{address}/{page}"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "BamQuery" in done.stdout
    asked = requests_of(log, address)
    assert f"{address}/{page}" in asked
    assert {url for url in asked if not url.startswith(f"{address}/")} == set()


def requests_of(log: Path, address: str) -> set[str]:
    """Addresses that pages asked for; the browser's own services, asked before any page, are not theirs."""
    text = log.read_text("utf-8")
    try:
        found = json.loads(text)
    except json.JSONDecodeError:  # ended while it was written
        found = json.loads(text.rstrip().rstrip(",") + "]}")
    kind = found["constants"]["logEventTypes"][_URL_REQUEST]
    urls = set()
    for event in found["events"]:
        parameters = event.get("params", {})
        url = parameters.get("url", "")
        if event["type"] == kind and urlsplit(url).scheme in ("http", "https", "ws", "wss"):
            from_page = parameters.get("initiator", "not an origin") != "not an origin"
            if from_page or url.startswith(address):
                urls.add(url)
    return urls


def test_no_script_or_style_names_another_place(site: Path) -> None:
    for file in [*site.rglob("assets/**/*.js"), *site.rglob("assets/**/*.css")]:
        text = file.read_text("utf-8")
        for place in ("unpkg.com", "googleapis", "gstatic", "jsdelivr", "cdnjs"):
            assert place not in text, f"{file.name}: {place}"


def test_every_page_of_the_docs_is_there(site: Path) -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    for page in docs.rglob("*.md"):
        built = site / page.relative_to(docs).with_suffix(".html")
        assert built.exists(), page
