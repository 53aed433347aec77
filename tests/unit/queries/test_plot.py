import json
from pathlib import Path

import pytest

from bamquery.errors import BamQueryError, StorageError
from bamquery.queries import plot
from bamquery.queries.command_line import main
from bamquery.queries.plot import Measurements, draw, read_measurements


def measurements(systems: int = 2, zone_maps: bool = True) -> Measurements:
    names = ["BamQuery", "DuckDB", "pyarrow.dataset", "Polars", "another"]
    return {
        "table": "trips",
        "table_rows": 20_000_000,
        "cold": False,
        "settings": {"zone_maps": zone_maps},
        "queries": [
            {
                "query": f"q{number}",
                "amplification": None if number == 5 else 0.3 * number,
                "systems": [{"system": name, "median": 0.01 * number} for name in names[:systems]],
            }
            for number in range(1, 6)
        ],
    }


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_pictures_of_one_and_several_runs(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    draw([measurements(1)], tmp_path / f"one.{suffix}")
    draw([measurements(5), measurements(5, zone_maps=False)], tmp_path / f"two.{suffix}")
    assert 5000 < (tmp_path / f"one.{suffix}").stat().st_size < (tmp_path / f"two.{suffix}").stat().st_size


def test_the_picture_says_what_it_shows(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        draw([measurements(4), measurements(4, zone_maps=False)], tmp_path / "run.svg")
    text = (tmp_path / "run.svg").read_text()
    for wanted in (
        "trips, 20 M rows: time, less is better",
        "with zone maps",
        "without zone maps",
        "Polars",
        "Q5",
    ):
        assert wanted in text


def test_every_system_whose_bytes_are_known_is_shown_and_wide_ranges_on_a_logarithmic_axis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    shown = []
    monkeypatch.setattr(plot, "save", lambda figure, path: shown.append(figure))
    ratios = {"BamQuery": 0.3, "cuDF, pinned memory": 6.0, "DuckDB": None, "cuDF read_parquet": 0.2}
    for seconds in (0.02, 2.0):
        run = dict(measurements())
        run["queries"] = [
            {
                "query": "q1",
                "amplification": 0.3,
                "systems": [
                    {"system": name, "median": seconds if ratio else 0.01, "amplification": ratio}
                    for name, ratio in ratios.items()
                ],
            }
        ]
        draw([run], tmp_path / "run.svg")
    for figure, scale in zip(shown, ("linear", "log"), strict=True):
        times, amplification = figure.axes
        assert times.get_yscale() == scale
        bars = [container.get_label() for container in amplification.containers]
        assert bars == ["BamQuery", "cuDF, pinned memory", "cuDF read_parquet"]


def test_equal_measurements_equal_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("a.svg", "b.svg"):
        draw([measurements()], tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_pictures_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for path in (tmp_path / "no" / "run.png", tmp_path / "run.gif2"):
        with pytest.raises(StorageError, match="cannot write the picture"):
            draw([measurements()], path)


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(plot.importlib, "import_module", missing)
    with pytest.raises(BamQueryError, match=r'needs matplotlib.*pip install "bamquery\[bench\]"'):
        draw([measurements()], tmp_path / "run.png")


def test_measurements_are_drawn_again_from_their_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "run.json").write_text(json.dumps(measurements()))
    assert read_measurements(tmp_path / "run.json") == measurements()
    assert main(["draw", str(tmp_path / "run.json"), "--plot", str(tmp_path / "run.png")]) == 0
    assert (tmp_path / "run.png").exists()
    for text, message in (
        ("{", "cannot be read"),
        ("[]", "holds no measurements"),
        ("{}", "holds no measurements"),
    ):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(StorageError, match=rf"other\.json: {message}"):
            read_measurements(tmp_path / "other.json")
