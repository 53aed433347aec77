"""A page as a browser shows it; `--pictures DIR` keeps what it looked like."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from bamquery.command_line.main import main

SQL = """\
SELECT tolls_amount > 0 AS tolls, avg(total_amount / trip_distance) AS per_mile, count(*) AS trips
FROM trips
WHERE trip_distance >= 30 AND extra > 0
GROUP BY ALL
ORDER BY per_mile DESC"""
STREAMED_AND_BLOCKS = {"light": {(31, 111, 180), (224, 138, 30)}, "dark": {(77, 155, 230), (240, 168, 72)}}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium: apt install chromium")
    return found


@pytest.fixture(scope="module")
def trips(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("browser") / "taxi.bq"
    assert main(["taxi", "generate", str(path), "--rows", "3e6", "--table", "trips"]) == 0
    return path


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_browser_shows_the_page(browser, trips, tmp_path, theme, pictures) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(trips), SQL, "-o", str(page), "--theme", theme]) == 0
    picture = tmp_path / "report.png"
    size = (1200, 1780)
    command = [
        *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *(f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={size[0]},{size[1]}"),
        *(f"--screenshot={picture}", "--enable-logging=stderr", page.as_uri()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Content Security Policy" not in done.stderr  # nothing in the page asked for what is refused
    with Image.open(picture) as image:
        assert image.size == size
        colours = {colour for _, colour in image.convert("RGB").getcolors(size[0] * size[1])}
    assert colours >= STREAMED_AND_BLOCKS[theme]
    if pictures is not None:
        shutil.copy(picture, pictures / f"report-{theme}.png")
