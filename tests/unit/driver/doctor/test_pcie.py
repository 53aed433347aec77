from pathlib import Path

import pytest

from bamquery.driver.doctor.pcie import Link, read_link
from bamquery.driver.machine import Machine


# PCI Express base specification: GB/s of 16 lanes in one direction, by generation.
@pytest.mark.parametrize(
    ("speed", "rate"), [(2.5, 4.0), (5, 8.0), (8, 15.75), (16, 31.5), (32, 63.0), (64, 121.0)]
)
def test_rates(speed: float, rate: float) -> None:
    assert Link(speed, 16, speed, 16).gigabytes_per_second == pytest.approx(rate, rel=1e-3)


def test_what_sysfs_says(tmp_path: Path) -> None:
    names = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
    for name, text in zip(names, ("16.0 GT/s PCIe", "8", "32.0 GT/s PCIe", "16"), strict=True):
        (tmp_path / name).write_text(text + "\n")
    link = read_link(Machine(), tmp_path)
    assert link == Link(16, 8, 32, 16)
    assert str(link) == "16 GT/s x8, 15.8 GB/s (of 32 GT/s x16, 63.0 GB/s)"


@pytest.mark.parametrize("text", ["Unknown", "Unknown speed", ""])
def test_no_link(tmp_path: Path, text: str) -> None:
    assert read_link(Machine(), tmp_path) is None
    (tmp_path / "current_link_speed").write_text(text)
    for name in ("current_link_width", "max_link_speed", "max_link_width"):
        (tmp_path / name).write_text("255")
    assert read_link(Machine(), tmp_path) is None
    (tmp_path / "current_link_speed").write_text("2.5 GT/s")
    assert read_link(Machine(), tmp_path) is None
