"""Whatever a JSON file holds, reading it gives rows or an error in words, and the process lives on.

Files are read in a process of their own: Arrow's parser crashes at some that are no worse than others.
"""

import subprocess
import sys

import pytest

FILES = 1500

CHILD = r"""
import random, sys
from pathlib import Path

from bamquery.errors import IngestError
from bamquery.storage.ingest.opening import open_source
from bamquery.storage.ingest.sources.options import FileOptions
import pyarrow as pa

SCALARS = [
    "null", "true", "false", "0", "-0", "1", "2.50", "1e5", "1e400", "-9223372036854775809",
    "18446744073709551615", "9223372036854775808", "1" * 60, "1" * 5000, "NaN", "-Infinity", "01", "tr",
    '""', '"x"', '"2024-01-01"', '"2024-13-01"', '"2024-01-01 10:00:00"', '"\\ud800"', '"\\u00e9}{]["',
    '"\\"', '"a', "nul",
]
NAMES = ['"a"', '"b"', '"A"', '""', '"\\ud800"', "a"]
DECLARED = [pa.large_string(), pa.int64(), pa.uint64(), pa.decimal128(38, 0), pa.decimal128(5, 2)]
DECLARED += [pa.date32(), pa.bool_()]
OPTIONS = [FileOptions(layout=layout) for layout in ("auto", "auto", "lines", "array", "objects")]
OPTIONS += [FileOptions(members=(("a", kind), ("b", other))) for kind in DECLARED for other in DECLARED[:3]]


def value(random, depth):
    kind = random.random()
    if depth and kind < 0.15:
        return "[" + ",".join(value(random, depth - 1) for _ in range(random.randrange(4))) + "]"
    if depth and kind < 0.3:
        return record(random, depth - 1)
    return random.choice(SCALARS[:17] if random.random() < 0.9 else SCALARS)


def record(random, depth):
    names = random.sample(NAMES[:2], random.randrange(3))
    if random.random() < 0.1:
        names = random.choices(NAMES, k=3)
    space = random.choice(["", "", " ", "\n"])
    return "{" + ("," + space).join(f"{name}:{space}{value(random, depth)}" for name in names) + "}"


def content(random):
    depth = random.choice([0, 0, 1, 3])
    rows = [record(random, depth) if random.random() < 0.8 else "null" for _ in range(random.randrange(6))]
    if random.random() < 0.1:
        rows.insert(random.randrange(len(rows) + 1), value(random, depth))
    if random.random() < 0.03:
        opening, closing = random.choice([("[", "]"), ('{"a":', "}"), ('[{"b":', "}]")])
        rows.insert(random.randrange(len(rows) + 1), '{"a":' + opening * 30000 + "1" + closing * 30000 + "}")
    text = random.choice(["\n", "\n", "\r\n", " ", ""]).join(rows)
    if random.random() < 0.3:
        text = "[" + ",".join(rows) + "]"
    data = text.encode()
    if random.random() < 0.1:
        data = data[: random.randrange(len(data) + 1)]
    if data and random.random() < 0.1:
        place = random.randrange(len(data))
        data = data[:place] + random.choice([b"\xff", b"\0", b"{", b"]", b"null"]) + data[place + 1 :]
    return data


path = Path(sys.argv[1])
read = refused = 0
for seed in range(int(sys.argv[2]), int(sys.argv[3])):
    chance = random.Random(seed)
    data = content(chance)
    path.write_bytes(data)
    print(seed, flush=True)
    try:
        source = open_source(path, options=chance.choice(OPTIONS))
        rows = 0
        for batch in source.batches():
            batch.validate(full=True)
            rows += batch.num_rows
        assert rows == source.total_rows, (seed, data)
        read += 1
    except IngestError:
        refused += 1
assert read > refused / 4 > 0, (read, refused)
"""


@pytest.mark.parametrize("first", [0, FILES])
def test_no_file_ends_the_process(tmp_path, first):
    run = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "x.json"), str(first), str(first + FILES)],
        capture_output=True,
        text=True,
        check=False,
    )
    last = run.stdout.split()[-1:]
    assert run.returncode == 0, (
        f"seed {last}: {(tmp_path / 'x.json').read_bytes()[:500]!r}\n{run.stderr[-2000:]}"
    )
