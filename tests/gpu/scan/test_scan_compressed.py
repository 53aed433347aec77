"""Of compressed strings the GPU's scan gives what the CPU's gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.errors import CorruptionError
from bamquery.plan.expressions import Call
from bamquery.storage.fragments.stored_buffers import stored_buffers
from bamquery.storage.tables.snapshot import Snapshot
from tests.devices.scan_cases import STRATEGIES, column, compare, require_same, run
from tests.devices.scan_strings import STRINGS, texts
from tests.forced_forms import forced_form
from tests.stored import require_direct_reads, stored


@pytest.fixture(scope="module")
def text_rows() -> int:
    return 100_000


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, text_rows: int) -> Iterator[Snapshot]:
    """Four fragments, all strings in symbols but those of `huge`, which is left plain."""
    cuts = (1, text_rows // 3, text_rows // 3 + 10)
    with (
        forced_form("fsst"),
        stored(
            tmp_path_factory.mktemp("compressed") / "db", texts(text_rows), cuts, encoding="auto"
        ) as snapshot,
    ):
        yield snapshot


def agree(device: Any, snapshot: Snapshot, columns: Any, predicates: Any = (), **settings: Any) -> Any:
    """Have both devices scan, and hold their answers and needs against each other."""
    expected, theirs = run(CpuDevice(), snapshot, columns, predicates, strategy="stream")
    found, ours = run(device, snapshot, columns, predicates, **settings)
    require_same(found, expected)
    for name, want in theirs.columns.items():
        got = ours.columns[name]
        assert got.rows_needed == want.rows_needed, name
        assert abs(got.bytes_needed - want.bytes_needed) <= 16, name
    return ours


def test_columns_are_compressed(text: Snapshot) -> None:
    names = {name for name in STRINGS if stored_buffers(text.fragments[-1], name).compression is not None}
    assert names >= {"short", "long", "wide", "blob", "void", "blank", "holes"}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("selectivity", [0.0, 0.0005, 0.05, 1.0])
def test_rows_of_a_filter(cuda: Any, text: Snapshot, strategy: str, selectivity: float) -> None:
    predicate = compare(text, "pick", "less", selectivity)
    agree(cuda, text, ("number", *STRINGS, "word"), [predicate], strategy=strategy)


def test_all_rows(cuda: Any, text: Snapshot) -> None:
    agree(cuda, text, STRINGS)
    agree(cuda, text, ("number", "long", "word"))


def test_filters_on_compressed_strings(cuda: Any, text: Snapshot) -> None:
    """First of all, and after other conditions; columns that are held lose rows with each."""
    outputs = ("short", "long", "word", "number")
    agree(cuda, text, outputs, [compare(text, "wide", "greater", "z")])
    agree(cuda, text, outputs, [Call("is_not_null", (column(text, "holes"),), pa.bool_())])
    agree(cuda, text, ("long", "word"), [compare(text, "long", "equal", "nowhere")])
    two = [compare(text, "pick", "less", 0.3), compare(text, "short", "equal", "xxyy")]
    found, _ = run(cuda, text, outputs, two)
    expected, _ = run(CpuDevice(), text, outputs, two)
    require_same(found, expected)


def test_direct_reads(cuda: Any, text: Snapshot) -> None:
    require_direct_reads(text.fragments[0].path.parent)
    agree(cuda, text, ("long", "number"), [compare(text, "pick", "less", 0.02)], reader="direct")


def test_changed_bytes_are_found(cuda: Any, tmp_path: Path) -> None:
    with forced_form("fsst"), stored(tmp_path / "db", texts(5000), encoding="auto") as snapshot:
        (fragment,) = snapshot.fragments
        place = fragment.layout.columns[fragment.column_index("long")].values.offset
        data = bytearray(fragment.path.read_bytes())
        data[place + 5000] ^= 1
        fragment.path.write_bytes(data)
        with pytest.raises(CorruptionError, match='column "long", vector'):
            run(cuda, snapshot, ("long",))


def test_only_codes_cross_the_bus(cuda: Any, text: Snapshot) -> None:
    found = agree(cuda, text, ("holes", "wide")).columns
    for name in ("holes", "wide"):
        assert found[name].counters.bytes < found[name].bytes_needed / 2
        assert set(found[name].paths) <= {"copy engine", "zero-copy", "queue pairs"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_bytes_that_lead_astray(cuda: Any, tmp_path: Path, strategy: str) -> None:
    """Without checksums: the error that a CPU gives, for ends, and for codes without a symbol."""
    settings = {"strategy": strategy, "verify_checksums": False}
    with forced_form("fsst"), stored(tmp_path / "db", texts(5000), encoding="auto") as snapshot:
        (fragment,) = snapshot.fragments
        predicates = [compare(snapshot, "pick", "less", 0.9)]
        place = fragment.layout.columns[fragment.column_index("wide")].values.offset
        compression = stored_buffers(fragment, "wide").compression
        assert compression is not None
        parameters = compression.parameters
        written = fragment.path.read_bytes()
        for vector, ends in ((0, True), (4, True), (1, False), (4, False)):
            begin = place + int(parameters["offset"][vector])
            size = 16 * int(parameters["bits"][vector]) * 8
            size, begin = (size, begin) if ends else (64, begin + size)
            fragment.path.write_bytes(written[:begin] + b"\xff" * size + written[begin + size :])
            for device in (CpuDevice(), cuda):
                fault = "ends do not ascend within their parts" if ends else "its codes are no strings"
                with pytest.raises(CorruptionError, match=f'column "wide".*vector .*{fault}'):
                    run(device, snapshot, ("wide",), predicates, **settings)
        fragment.path.write_bytes(written)
        agree(cuda, snapshot, ("wide",), predicates, **settings)
