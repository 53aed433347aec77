"""What goes wrong below a scan surfaces with its file and block, and the next query answers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bamquery.driver.faults import Fault, Opcode
from bamquery.errors import CorruptionError, NvmeError, StorageError
from bamquery.storage.tables.snapshot import Snapshot
from tests.devices.scan_cases import check, compare, every_type, run
from tests.stored import stored

MEDIA_ERROR = 0x281


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Snapshot]:
    with stored(tmp_path / "db", every_type(60_000, nulls="none")) as snapshot:
        yield snapshot


def rings_of(cuda: Any) -> list[Any]:
    from bamquery.engine.cuda.scan.resources.scan_resources import resources_of

    return list(resources_of(cuda.session)._rings.values())


def test_an_error_in_the_middle_of_a_scan(cuda: Any, table: Snapshot) -> None:
    predicate = compare(table, "pick", "less", 0.3)
    settings = {"strategy": "blocks", "zone_maps": False, "reader": "queues"}
    check(cuda, table, ("f64", "i32"), [predicate], **settings)
    fragment = table.fragments[0]
    values = fragment.layout.columns[fragment.column_index("f64")].values
    rings = rings_of(cuda)
    lba = values.offset // 512 + 100
    for one in rings:
        one.controller.set_faults(
            [Fault("error", opcode=Opcode.READ, first_lba=lba, blocks=3, status=MEDIA_ERROR)]
        )
    try:
        with pytest.raises(NvmeError) as caught:
            run(cuda, table, ("f64", "i32"), [predicate], **settings)
    finally:
        for one in rings:
            one.controller.set_faults([])
    assert (caught.value.sct, caught.value.sc) == (2, 0x81)
    assert lba <= caught.value.lba < lba + 3
    assert caught.value.path == fragment.path
    check(cuda, table, ("f64", "i32"), [predicate], **settings)


def test_commands_that_are_never_answered(
    cuda: Any, table: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicate = compare(table, "pick", "less", 0.01)
    settings = {"strategy": "blocks", "zone_maps": False, "reader": "queues"}
    check(cuda, table, ("f64",), [predicate], **settings)
    from bamquery.engine.cuda.scan.reads import fetch_blocks as fetching

    monkeypatch.setattr(fetching, "DEADLINE_NS", 300_000_000)
    rings = rings_of(cuda)
    for one in rings:
        one.controller.set_faults([Fault("lose", opcode=Opcode.READ, most=3)])
    try:
        with pytest.raises(NvmeError) as caught:
            run(cuda, table, ("f64",), [predicate], **settings)
    finally:
        for one in rings:
            one.controller.set_faults([])
    assert (caught.value.sct, caught.value.sc) == (7, 0xC0)
    monkeypatch.undo()
    check(cuda, table, ("f64",), [predicate], **settings)


@pytest.mark.parametrize("strategy", ["stream", "blocks"])
def test_a_truncated_file(cuda: Any, table: Snapshot, strategy: str) -> None:
    predicate = compare(table, "pick", "less", 0.01)
    check(cuda, table, ("f64",), [predicate], strategy=strategy)
    path = table.fragments[0].path
    content = path.read_bytes()
    os.truncate(path, len(content) // 2)
    with pytest.raises(StorageError, match=path.name):
        run(cuda, table, ("f64",), [predicate], strategy=strategy)
    path.write_bytes(content)
    check(cuda, table, ("f64",), [predicate], strategy=strategy)


@pytest.mark.parametrize(
    ("part", "strategy"), [("values", "stream"), ("values", "vectors"), ("pick", "auto")]
)
def test_bytes_that_are_not_those_that_were_written(
    cuda: Any, table: Snapshot, part: str, strategy: str
) -> None:
    """Whole vectors are compared with their checksums on the GPU."""
    fragment = table.fragments[0]
    name = "f64" if part == "values" else "pick"
    extent = fragment.layout.columns[fragment.column_index(name)].values
    place = extent.offset + 5 * 8192 + 4711
    with fragment.path.open("r+b") as file:
        file.seek(place)
        before = file.read(1)
        file.seek(place)
        file.write(bytes([before[0] ^ 64]))
    predicate = compare(table, "pick", "less", 0.5)
    settings = {"strategy": strategy, "zone_maps": False}
    with pytest.raises(CorruptionError, match=f'column "{name}", vector 5: its values do not match'):
        run(cuda, table, ("f64",), [predicate], **settings)
    run(cuda, table, ("f64",), [predicate], **settings, verify_checksums=False)
    with fragment.path.open("r+b") as file:
        file.seek(place)
        file.write(before)
    check(cuda, table, ("f64",), [predicate], **settings)
