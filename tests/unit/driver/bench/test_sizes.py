import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.driver.bench.sizes import (
    format_size,
    parse_count,
    parse_seconds,
    parse_size,
    parse_values,
    parse_write_share,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("4k", 4096),
        ("4K", 4096),
        ("64KiB", 65536),
        ("1.5m", 3 << 19),
        ("1G", 1 << 30),
        ("10GB", 10**10),
        ("2TiB", 2 << 40),
        (" 7b ", 7),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "k", "4x", "-4k", "0", "1ib", "1.3k", "4 k", "1e3"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="it takes"):
        parse_size(text)


@given(st.integers(1, 1 << 50))
def test_sizes_survive_being_written(size: int) -> None:
    assert parse_size(format_size(size)) == size


def test_seconds() -> None:
    assert [parse_seconds(text) for text in ("5", "0.5s", "300ms", "2m")] == [5, 0.5, 0.3, 120]
    for text in ("", "0", "-1", "5h", "s"):
        with pytest.raises(ValueError, match="it takes"):
            parse_seconds(text)


def test_write_shares() -> None:
    assert [parse_write_share(text) for text in ("read", "write", "70/30", "0/100")] == [0, 1, 0.3, 1]
    for text in ("", "70", "70/40", "both"):
        with pytest.raises(ValueError, match="it takes"):
            parse_write_share(text)


def test_counts() -> None:
    assert parse_count("132") == 132
    for text in ("0", "-1", "1.5", "", "many", "²"):
        with pytest.raises(ValueError, match="whole number"):
            parse_count(text)


def test_values_of_sweeps() -> None:
    assert parse_values("1,2,8", parse_count) == (1, 2, 8)
    assert parse_values("1..8", parse_count) == (1, 2, 4, 8)
    assert parse_values("3..20", parse_count) == (3, 6, 12, 20)
    assert parse_values("1G..8G", parse_size) == (1 << 30, 2 << 30, 4 << 30, 8 << 30)
    assert parse_values("5..5", parse_count) == (5,)
    for text, parse in (("8..1", parse_count), ("1,,2", parse_count), ("0.5..2", float), ("", parse_count)):
        with pytest.raises(ValueError):  # noqa: PT011 (each has its own words)
            parse_values(text, parse)
