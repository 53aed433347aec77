"""Drives that a software controller imitates."""

from __future__ import annotations

from dataclasses import dataclass

from bamquery import _native


@dataclass(frozen=True)
class DriveProfile:
    """One drive. Small commands are bound by commands a second, large ones by bytes a second.

    Attributes:
        name: such as "Intel Optane P5800X".
        read_latency: seconds, of a lone 4 KiB read.
        write_latency: seconds.
        read_commands: a second.
        write_commands: a second.
        read_bytes: a second.
        write_bytes: a second.
    """

    name: str
    read_latency: float
    write_latency: float
    read_commands: float
    write_commands: float
    read_bytes: float
    write_bytes: float


PROFILES: dict[str, DriveProfile] = {fields[0]: DriveProfile(*fields) for fields in _native.drive_profiles()}
"""The drives of the BaM paper, by name; where the numbers come from is said in drive_profile.hpp."""
