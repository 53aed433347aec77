"""How fast a PCI Express link is, from what sysfs says of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bamquery.driver.machine import Machine


@dataclass(frozen=True)
class Link:
    """Speed (GT/s of a lane) and width (lanes) now, and the most that this end could do."""

    speed: float
    width: int
    max_speed: float
    max_width: int

    @property
    def gigabytes_per_second(self) -> float:
        """One direction, after line coding, before packet headers (a tenth or so)."""
        return _rate(self.speed, self.width)

    @property
    def max_gigabytes_per_second(self) -> float:
        """The same of the most it could do."""
        return _rate(self.max_speed, self.max_width)

    @property
    def is_slowed(self) -> bool:
        """Whether it runs below what this end could do."""
        return (self.speed, self.width) != (self.max_speed, self.max_width)

    def __str__(self) -> str:
        now = f"{self.speed:g} GT/s x{self.width}, {self.gigabytes_per_second:.1f} GB/s"
        if not self.is_slowed:
            return now
        return (
            f"{now} (of {self.max_speed:g} GT/s x{self.max_width}, {self.max_gigabytes_per_second:.1f} GB/s)"
        )

    def to_dict(self) -> dict[str, float]:
        """For JSON."""
        return {
            "speed_gt_s": self.speed,
            "width": self.width,
            "max_speed_gt_s": self.max_speed,
            "max_width": self.max_width,
            "gb_s": round(self.gigabytes_per_second, 2),
            "max_gb_s": round(self.max_gigabytes_per_second, 2),
        }


def read_link(machine: Machine, device: Path) -> Link | None:
    """The link of a PCI device's folder in sysfs; None where it says nothing, as in many virtual machines."""
    values = [
        _number(machine.text(device / name))
        for name in ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
    ]
    if any(value is None for value in values):
        return None
    speed, width, max_speed, max_width = (value or 0.0 for value in values)
    # 255 lanes is what a kernel says of a device that has no link.
    if not speed or not 0 < width < 255:
        return None
    return Link(speed, int(width), max_speed, int(max_width))


def _number(text: str | None) -> float | None:
    match = re.match(r"\d+(\.\d+)?", text or "")
    return float(match.group()) if match else None


def _rate(speed: float, width: int) -> float:
    # Line coding: 8b/10b below generation 3, 128b/130b up to 5, 256-byte flits with 242 of payload from 6 on.
    coding = 8 / 10 if speed < 8 else 128 / 130 if speed < 64 else 242 / 256
    return speed * width * coding / 8
