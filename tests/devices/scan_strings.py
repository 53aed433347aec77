"""Tables of strings, binaries and dictionaries of every kind, for scans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

STRINGS = ("short", "long", "wide", "blob", "huge", "void", "blank", "holes")
DICTIONARIES = ("word", "amount", "when", "unknown")
_ALPHABET = ("a", "ß", "√", "😀", "z")


def texts(rows: int, seed: int = 0, *, huge: int = 200_000) -> pa.Table:
    """Strings and dictionaries beside `pick`, uniform in [0, 1), and `number`.

    `short` is often empty and sometimes null; `long` now and then longer than a block and than the offsets of
    a vector; `wide` is not ASCII; `blob` is any bytes; `huge` has one string of so many bytes and empty ones;
    `void` is null, `blank` empty throughout; `holes` has vectors without a null, with some, and of nothing
    else. Dictionaries are of strings, decimals, timestamps and of nothing.
    """
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 9, rows) * (random.random(rows) < 0.6)
    short = [None if n % 11 == 5 else "x" * int(n) + "y" * (i % 3) for i, n in enumerate(lengths)]
    sizes = np.where(
        random.random(rows) < 0.01, random.integers(0, 20_000, rows), random.integers(0, 40, rows)
    )
    letters = random.bytes(64).hex() * 200
    long = [letters[i % 50 : i % 50 + int(size)] for i, size in enumerate(sizes)]
    wide = ["".join(_ALPHABET[(i + k) % 5] for k in range(i % 13)) for i in range(rows)]
    blob = [random.bytes(i % 29) if i % 17 else None for i in range(rows)]
    one = [""] * rows
    one[rows // 2] = "0123456789" * (huge // 10)
    void: list[str | None] = [None] * rows
    part = np.zeros(rows, np.bool_)
    part[rows // 8 : rows // 2] = random.random(rows // 2 - rows // 8) < 0.3
    part[rows // 2 : rows // 2 + 2100] = True  # a vector and more of nothing else
    holes = pa.array([f"value {i % 1000}" for i in range(rows)], pa.large_string(), mask=part)
    numbers = random.integers(0, 50, rows)
    words = pa.array(np.array(["red", "green", "", "blaugrün"])[numbers % 4], mask=part)
    amounts: Any = pa.array(numbers.astype(np.int64) - 25).cast(pa.decimal128(21, 2))
    return pa.table(
        {
            "pick": random.random(rows),
            "number": pa.array(np.arange(rows)),
            "short": pa.array(short, pa.large_string()),
            "long": pa.array(long, pa.large_string()),
            "wide": pa.array(wide, pa.large_string()),
            "blob": pa.array(blob, pa.large_binary()),
            "huge": pa.array(one, pa.large_string()),
            "void": pa.array(void, pa.large_string()),
            "blank": pa.array([""] * rows, pa.large_string()),
            "holes": holes,
            "word": words.dictionary_encode(),
            "amount": amounts.dictionary_encode(),
            "when": pa.array(numbers * 86_400_000_001).cast(pa.timestamp("us")).dictionary_encode(),
            "unknown": pa.array(void, pa.large_string()).dictionary_encode(),
        }
    )


def random_texts(random: np.random.Generator) -> tuple[pa.Table, tuple[int, ...]]:
    """Up to 5,000 rows of three columns of binaries, whose lengths differ in kind, and where to cut them."""
    rows = int(random.choice([1, 5, 1023, 1024, 1025, 2048, 3000, 5000]))
    columns: dict[str, Any] = {"pick": random.random(rows)}
    for name in ("a", "b", "c"):
        sizes = _lengths(random, rows)
        data = random.bytes(int(sizes.sum()))
        ends = np.cumsum(sizes).tolist()
        nulls = random.random(rows) < random.choice([0.0, 0.01, 0.5, 0.99])
        nulls[: rows // 2] |= random.random() < 0.3
        values = [data[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]
        columns[name] = pa.array(values, pa.large_binary(), mask=nulls)
    cuts = random.integers(1, max(rows, 2), random.integers(0, 4)).tolist()
    return pa.table(columns), tuple(sorted({cut for cut in cuts if cut < rows}))


def _lengths(random: np.random.Generator, rows: int) -> Any:
    """Short, rare and long, of about a block, of 16 bytes or none, all equal, or in stretches."""
    match random.integers(0, 6):
        case 0:
            return random.integers(0, 5, rows)
        case 1:
            return np.where(random.random(rows) < 0.002, random.integers(0, 60_000, rows), 0)
        case 2:
            return random.integers(0, 700, rows)
        case 3:
            return np.where(random.random(rows) < 0.5, 16, 0)
        case 4:
            return np.full(rows, random.integers(0, 600))
        case _:
            return np.where(np.arange(rows) // 500 % 2 == 0, 0, random.integers(0, 40, rows))
