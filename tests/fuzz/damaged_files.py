"""Cases: a file of another format of which bytes were changed, read in every way that reads such files."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import bamquery
from tests.fuzz.cases import MEMORY_LIMIT, judged, mutated, temporary_folder

_ROWS = (
    "SELECT i, i / 7.0 AS d, CASE WHEN i % 5 > 0 THEN 'text ' || i % 40 END AS s, i % 3 = 0 AS b, "
    "(i * 1.25)::DECIMAL(12, 2) AS m, DATE '2020-01-01' + i::INT AS day, "
    "TIMESTAMP '2020-01-01' + INTERVAL (i) MINUTE AS at, TIME '00:00' + INTERVAL (i) SECOND AS t "
    "FROM range(700) r(i)"
)


def _written(folder: Path) -> dict[str, bytes]:
    """A whole file of each kind, by its suffix."""
    con = duckdb.connect(config={"threads": 1})
    table = con.sql(_ROWS).to_arrow_table()
    nested = table.append_column("l", pa.array([[i, None] for i in range(table.num_rows)]))
    for suffix, options in {
        ".snappy.parquet": {"compression": "snappy", "row_group_size": 200},
        ".plain.parquet": {"compression": "none", "use_dictionary": False, "data_page_version": "2.0"},
        ".nested.parquet": {"compression": "gzip"},
        ".zstd.parquet": {"compression": "zstd", "write_page_index": True},
    }.items():
        pq.write_table(nested if "nested" in suffix else table, folder / f"x{suffix}", **options)
    coded = table.set_column(2, "s", table["s"].dictionary_encode())
    views = table.set_column(2, "s", table["s"].cast(pa.string_view()))
    lz4 = pa.ipc.IpcWriteOptions(compression="lz4")
    for suffix, content, options in (
        (".arrow", coded, None),
        (".lz4.arrow", views, lz4),
    ):
        with pa.ipc.new_file(folder / f"x{suffix}", content.schema, options=options) as file:
            file.write_table(content, max_chunksize=200)
    with pa.ipc.new_stream(folder / "x.stream.arrow", table.schema) as stream:
        stream.write_table(table, max_chunksize=200)
    for suffix, how in {
        ".csv": "",
        ".tsv": "(DELIM '\t')",
        ".csv.zst": "(COMPRESSION zstd)",
        ".json": "(FORMAT json)",
        ".array.json": "(FORMAT json, ARRAY true)",
        ".json.gz": "(FORMAT json, COMPRESSION gzip)",
    }.items():
        con.sql(f"COPY ({_ROWS}) TO '{folder / f'x{suffix}'}' {how}")
    con.close()
    records = [{"a": {"b": [1, {"c": "é"}]}, "x": None, "n": 10**i} for i in range(30)]
    (folder / "x.nested.json").write_text("\n".join(map(json.dumps, records)))
    (folder / "x.csv.gz").write_bytes(gzip.compress((folder / "x.csv").read_bytes()))
    return {path.name[1:]: path.read_bytes() for path in sorted(folder.iterdir())}


class DamagedFiles:
    """Files of every format, each damaged anew."""

    def __init__(self) -> None:
        """Write a whole one of each."""
        self._scratch = TemporaryDirectory(dir=temporary_folder())
        self._base = Path(self._scratch.name)
        self._files = _written(self._base)
        self._con = bamquery.connect(memory_limit=MEMORY_LIMIT, threads=2)

    def run(self, seed: int) -> str:
        """See `Cases`."""
        luck = random.Random(seed)
        suffix = luck.choice(sorted(self._files))
        path = self._base / f"case{suffix}"
        content = self._files[suffix]
        if suffix.endswith(".gz") and luck.random() < 0.5:  # within, behind a right checksum
            path.write_bytes(gzip.compress(mutated(gzip.decompress(content), luck, is_text=True)))
        else:
            is_text = suffix.endswith((".csv", ".tsv", ".json"))
            path.write_bytes(mutated(content, luck, is_text=is_text))
        ends: list[str] = []
        try:
            for query in (f"FROM '{path}'", f"SELECT count(*) FROM '{path}'", self._more(path, luck)):
                with judged(f"{suffix}: {query[:80]}", ends):
                    for _ in self._con.statements(query):
                        _.fetchall()
        finally:
            path.unlink()
        return next((end for end in ends if end != "fine"), "fine")

    def close(self) -> None:
        """Remove the files."""
        self._con.close()
        self._scratch.cleanup()

    def _more(self, path: Path, luck: random.Random) -> str:
        return luck.choice(
            [
                f"CREATE OR REPLACE TABLE x AS FROM '{path}'; DROP TABLE x",
                f"SELECT max(s), sum(i) FROM '{path}' WHERE d > 50",
                f"DESCRIBE FROM '{path}'",
                f"SUMMARIZE FROM '{path}'",
                f"SELECT s, count(*) FROM '{path}' GROUP BY s ORDER BY 1 LIMIT 5",
            ]
        )
