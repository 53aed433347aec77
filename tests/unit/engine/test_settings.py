"""What users may set, and what they are told when they may not."""

from __future__ import annotations

import pytest

from bamquery.engine.settings import Settings, available_cores, parse_bytes
from bamquery.errors import SettingError


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("threads", "4", 4),
        ("THREADS", 2, 2),
        ("memory_limit", "2GiB", 2 << 30),
        ("memory_limit", "1.5 gb", 1_500_000_000),
        ("memory_limit", 1000, 1000),
        ("gpu_memory_limit", "4 GiB", 4 << 30),
        ("reader", "DIRECT", "direct"),
        ("block_size", "4kib", 4096),
        ("io_cores", "3", 3),
        ("zone_maps", "off", False),
        ("zone_maps", True, True),
        ("strategy", "blocks", "blocks"),
        ("verify_checksums", 0, False),
        ("verify_checksums", "ALL", "all"),
        ("progress", "true", True),
        ("device", "CPU", "cpu"),
        ("device", "cuda", "cuda:0"),
        ("device", "cuda:3", "cuda:3"),
    ],
)
def test_values_that_fit(name: str, value: object, expected: object) -> None:
    assert getattr(Settings().with_value(name, value), name.lower()) == expected


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("threads", 0, "whole number from 1"),
        ("threads", "many", "whole number"),
        ("threads", True, "whole number"),
        ("memory_limit", "2 elephants", "bytes"),
        ("memory_limit", 0, "more than 0"),
        ("memory_limit", -5, "more than 0"),
        ("reader", "magic", "auto, mapped, queues, direct"),
        ("block_size", 1000, "power of two"),
        ("block_size", 256, "power of two"),
        ("zone_maps", "maybe", "true or false"),
        ("device", "tpu", "cuda"),
    ],
)
def test_values_that_do_not(name: str, value: object, words: str) -> None:
    with pytest.raises(SettingError, match=f"{name} cannot be .*{words}"):
        Settings().with_value(name, value)


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(SettingError, match=r'no setting "memory_limits".* Did you mean "memory_limit"'):
        Settings().with_value("memory_limits", 1)


def test_none_restores_the_default() -> None:
    changed = Settings().with_values({"threads": 3, "reader": "mapped"})
    assert changed.with_values({"threads": None, "reader": None}) == Settings()


def test_defaults_follow_the_machine() -> None:
    assert Settings().effective_threads == available_cores()
    assert Settings().effective_memory_limit > 1 << 20
    assert Settings(threads=3).effective_threads == 3
    assert Settings(memory_limit=7).effective_memory_limit == 7


def test_bytes_have_binary_and_decimal_units() -> None:
    assert [parse_bytes(f"1{unit}") for unit in ("B", "kB", "KiB", "MB", "MiB", "TB", "TiB")] == [
        1,
        1000,
        1024,
        10**6,
        1 << 20,
        10**12,
        1 << 40,
    ]
