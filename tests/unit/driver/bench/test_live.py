import io

from rich.console import Console

from bamquery.driver.bench.live import LiveProgress, iops_text, rate


def test_a_terminal_sees_path_rate_and_run() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120, color_system=None)
    with LiveProgress(2.0, console) as progress:
        progress.label("pairs=4")
        progress("rings", 0.5, 1_000_000, 4_096_000_000)
    text = screen.getvalue()
    assert "rings pairs=4" in text
    assert "2 MIOPS, 8.19 GB/s" in text


def test_anything_else_sees_nothing() -> None:
    screen = io.StringIO()
    with LiveProgress(2.0, Console(file=screen, force_terminal=False)) as progress:
        progress("rings", 0.5, 10, 10)
    assert screen.getvalue().strip() == ""


def test_rates() -> None:
    assert [iops_text(value) for value in (12, 950, 12_300, 92.6e6)] == [
        "12 IOPS",
        "950 IOPS",
        "12.3 kIOPS",
        "92.6 MIOPS",
    ]
    assert rate(0, 0, 0.0) == ""
