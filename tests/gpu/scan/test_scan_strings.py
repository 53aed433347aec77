"""Of strings and dictionaries the GPU's scan gives what the CPU's gives, and reads and needs the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.driver.faults import Fault, Opcode
from bamquery.engine.cpu.device import CpuDevice
from bamquery.errors import CorruptionError, NvmeError
from bamquery.plan.expressions import Call, Cast, ColumnRef, Literal
from bamquery.storage.database.database import Database
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.tables.snapshot import Snapshot
from tests.devices.scan_cases import STRATEGIES, check, column, compare, require_same, run
from tests.devices.scan_strings import DICTIONARIES, STRINGS, random_texts, texts
from tests.stored import require_direct_reads, stored

MEDIA_ERROR = 0x281


@pytest.fixture(scope="module")
def text_rows() -> int:
    return 100_000


@pytest.fixture(scope="module")
def one_text(tmp_path_factory: pytest.TempPathFactory, text_rows: int) -> Iterator[Snapshot]:
    """One fragment, with a string much longer than all others together."""
    table = texts(text_rows, huge=100 * text_rows)
    with stored(tmp_path_factory.mktemp("texts") / "db", table) as snapshot:
        yield snapshot


@pytest.fixture(scope="module")
def many_texts(tmp_path_factory: pytest.TempPathFactory, text_rows: int) -> Iterator[Snapshot]:
    """Five fragments, two of them of few rows."""
    table = texts(text_rows, 1)
    cuts = (1, text_rows // 3, text_rows // 3 + 10, text_rows // 2 + 600)
    with stored(tmp_path_factory.mktemp("texts") / "db", table, cuts) as snapshot:
        yield snapshot


@pytest.fixture(params=["one_text", "many_texts"])
def text(request: pytest.FixtureRequest) -> Snapshot:
    found: Snapshot = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def own_text(tmp_path: Path, text_rows: int) -> Iterator[Snapshot]:
    """A table that a test may damage."""
    with stored(tmp_path / "db", texts(text_rows // 2, huge=10_000)) as snapshot:
        yield snapshot


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("selectivity", [0.0005, 0.05, 1.0])
@pytest.mark.parametrize("block_size", [512, 4096])
def test_strings(cuda: Any, text: Snapshot, strategy: str, selectivity: float, block_size: int) -> None:
    predicate = compare(text, "pick", "less", selectivity)
    profile = check(cuda, text, ("number", *STRINGS), [predicate], strategy=strategy, block_size=block_size)
    if strategy != "auto":
        paths = {"stream": {"copy engine", "zero-copy"}, "vectors": {"copy engine", "zero-copy"}}
        allowed = paths.get(strategy, {"queue pairs"})
        assert all(set(profile.columns[name].paths) <= allowed for name in STRINGS)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("selectivity", [0.01, 1.0])
def test_dictionaries(cuda: Any, text: Snapshot, strategy: str, selectivity: float) -> None:
    predicate = compare(text, "pick", "less", selectivity)
    check(cuda, text, ("number", *DICTIONARIES), [predicate], strategy=strategy)


def test_all_rows(cuda: Any, text: Snapshot) -> None:
    check(cuda, text, STRINGS)
    check(cuda, text, DICTIONARIES)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_direct_reads_of_strings(cuda: Any, text: Snapshot, strategy: str) -> None:
    require_direct_reads(text.fragments[0].path.parent)
    predicate = compare(text, "pick", "less", 0.02)
    chosen = (*STRINGS, *DICTIONARIES)
    profile = check(cuda, text, chosen, [predicate], strategy=strategy, reader="direct")
    assert profile.columns["long"].paths == {"queue pairs": profile.columns["long"].paths.total()}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_filters_on_strings_and_dictionaries(cuda: Any, text: Snapshot, strategy: str) -> None:
    """First of all, and after other conditions; columns that are held lose rows with each."""
    outputs = ("short", "long", "word", "number")
    check(cuda, text, outputs, [compare(text, "wide", "greater", "z")], strategy=strategy)
    few = compare(text, "pick", "less", 0.3)
    # Devices have reasons of their own for the order of several conditions.
    two = [few, compare(text, "short", "equal", "xxyy")]
    check(cuda, text, outputs, two, same_order=False, strategy=strategy)
    three = [few, _of_dictionary(text, "word", "green"), compare(text, "holes", "less", "value 5")]
    check(cuda, text, outputs, three, same_order=False, strategy=strategy)
    check(cuda, text, outputs, [Call("is_not_null", (column(text, "holes"),), pa.bool_())], strategy=strategy)
    check(cuda, text, ("huge",), [compare(text, "huge", "greater", "")], strategy=strategy)


@pytest.mark.parametrize("nulls", [False, True])
def test_conditions_ask_each_value_of_a_dictionary_once(
    cuda: Any, text: Snapshot, monkeypatch: pytest.MonkeyPatch, nulls: bool
) -> None:
    """Where dictionaries are too large to stay; of those that stay see test_late_columns.py."""
    from bamquery.engine.cuda.scan.columns import dictionaries

    monkeypatch.setattr(dictionaries, "_MOST_VALUES", 0)
    asked: list[int] = []
    matching = cuda.matching_positions
    condition = Call(
        "starts_with", (column(text, "word"), Literal(pa.scalar("gr", pa.large_string()))), pa.bool_()
    )
    if nulls:
        condition = Call("or", (Call("is_null", (column(text, "word"),), pa.bool_()), condition), pa.bool_())

    def counted(predicate: Any, frame: Any) -> Any:
        if "starts_with" in repr(predicate):
            asked.append(frame.rows)
        return matching(predicate, frame)

    monkeypatch.setattr(cuda, "matching_positions", counted)
    few = compare(text, "pick", "less", 0.9)
    check(cuda, text, ("word", "number"), [condition])
    check(cuda, text, ("word", "number"), [few, condition], same_order=False)
    assert asked
    assert max(asked) <= 1 + 4 * len(text.fragments)


def test_no_row_passes(cuda: Any, text: Snapshot) -> None:
    check(cuda, text, ("long", "word"), [compare(text, "long", "equal", "nowhere")])
    check(cuda, text, ("long", "word"), [_of_dictionary(text, "word", "nowhere")], zone_maps=False)


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_codes_of_each_width(cuda: Any, tmp_path: Path, bits: int) -> None:
    kind = pa.dictionary(pa.int8() if bits == 8 else pa.int16() if bits == 16 else pa.int32(), pa.int64())
    codes = pa.array([None if i % 13 == 0 else i % 100 for i in range(3000)], kind.index_type)
    values = pa.DictionaryArray.from_arrays(codes, pa.array(range(1000, 1100)))
    table = pa.table({"pick": [i / 3000 for i in range(3000)], "code": values})
    with Database.open(tmp_path / "db") as database:
        with database.create_table("t", table.schema) as writer:
            for batch in table.to_batches():
                writer.write(batch)
            writer.commit()
        with database.table("t").snapshot() as snapshot:
            assert snapshot.schema.field("code").type == kind
            for strategy in STRATEGIES:
                predicates = [compare(snapshot, "pick", "less", 0.5)]
                check(cuda, snapshot, ("code",), predicates, strategy=strategy, zone_maps=False)


@pytest.mark.parametrize("joined", [True, False])
def test_chunk_after_chunk(
    cuda: Any, text: Snapshot, monkeypatch: pytest.MonkeyPatch, *, joined: bool
) -> None:
    """Dictionaries are copied once a column, large ones once a fragment, whatever the chunks."""
    from bamquery.engine.cuda.scan import scan
    from bamquery.engine.cuda.scan.columns import dictionaries, libcudf_rows
    from bamquery.engine.cuda.scan.resources.scan_resources import resources_of

    resources_of(cuda.session).dictionaries.clear()
    if not joined:
        monkeypatch.setattr(dictionaries, "_MOST_VALUES", 0)

    copied: list[Any] = []
    upload = libcudf_rows.upload_values

    def counted(*given: Any) -> Any:
        copied.append(given)
        return upload(*given)

    monkeypatch.setattr(libcudf_rows, "upload_values", counted)
    monkeypatch.setattr(scan, "_FIRST_VECTORS", 2)
    monkeypatch.setattr(scan, "_CHUNK_VECTORS", 2)
    for columns, predicates in (
        (STRINGS, []),
        ((*STRINGS, "number"), [compare(text, "pick", "less", 0.3)]),
        (DICTIONARIES, [compare(text, "pick", "less", 0.9)]),
    ):
        copied.clear()
        require_same(run(cuda, text, columns, predicates)[0], run(CpuDevice(), text, columns, predicates)[0])
    fragments = len(text.fragments)
    once = len(DICTIONARIES) - 1 if joined else 0  # one has no values
    assert len(copied) == once + (len(DICTIONARIES) - once) * fragments


@pytest.mark.parametrize("strategy", ["stream", "blocks"])
def test_offsets_of_64_bits(
    cuda: Any, text: Snapshot, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    """What strings of more than 2 GiB have."""
    from bamquery.engine.cuda.scan.reads import string_reads

    monkeypatch.setattr(string_reads, "_NARROW", 1000)
    check(cuda, text, STRINGS, [compare(text, "pick", "less", 0.5)], strategy=strategy)


@pytest.mark.parametrize("seed", range(8))
def test_random_strings(cuda: Any, tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    table, cuts = random_texts(random)
    with stored(tmp_path / "db", table, cuts) as snapshot:
        for strategy in STRATEGIES:
            predicate = compare(snapshot, "pick", "less", float(random.choice([0.001, 0.05, 0.5, 0.999])))
            settings = {"strategy": strategy, "block_size": int(random.choice([512, 4096]))}
            zone_maps = bool(random.random() < 0.5)
            check(cuda, snapshot, ("a", "b", "c"), [predicate], **settings, zone_maps=zone_maps)


@pytest.mark.parametrize("part", ["offsets", "values"])
def test_commands_for_strings_that_are_never_answered(
    cuda: Any, own_text: Snapshot, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicates = [compare(own_text, "pick", "less", 0.01)]
    settings = {"strategy": "blocks", "zone_maps": False}
    check(cuda, own_text, ("long",), predicates, **settings)
    from bamquery.engine.cuda.scan.reads import fetch_blocks as fetching
    from bamquery.engine.cuda.scan.reads import string_blocks

    monkeypatch.setattr(fetching, "DEADLINE_NS", 300_000_000)
    monkeypatch.setattr(string_blocks, "DEADLINE_NS", 300_000_000)
    fragment = own_text.fragments[0]
    extent = getattr(fragment.layout.columns[fragment.column_index("long")], part)
    rings = _rings_of(cuda)
    for one in rings:
        lost = Fault(
            "lose",
            opcode=Opcode.READ,
            first_lba=extent.offset // 512,
            blocks=extent.length // 512,
            most=3,
        )
        one.controller.set_faults([lost])
    try:
        with pytest.raises(NvmeError) as caught:
            run(cuda, own_text, ("long",), predicates, **settings)
    finally:
        for one in rings:
            one.controller.set_faults([])
    assert (caught.value.sct, caught.value.sc) == (7, 0xC0)
    monkeypatch.undo()
    check(cuda, own_text, ("long",), predicates, **settings)


@pytest.mark.parametrize("part", ["offsets", "values"])
def test_an_error_in_a_column_of_strings(cuda: Any, own_text: Snapshot, part: str) -> None:
    predicates = [compare(own_text, "pick", "less", 2.0)]  # all rows, so that every block is read
    settings = {"strategy": "blocks", "zone_maps": False}
    check(cuda, own_text, ("long", "number"), predicates, **settings)
    fragment = own_text.fragments[0]
    lba = getattr(fragment.layout.columns[fragment.column_index("long")], part).offset // 512 + 20
    rings = _rings_of(cuda)
    for one in rings:
        one.controller.set_faults(
            [Fault("error", opcode=Opcode.READ, first_lba=lba, blocks=3, status=MEDIA_ERROR)]
        )
    try:
        with pytest.raises(NvmeError) as caught:
            run(cuda, own_text, ("long", "number"), predicates, **settings)
    finally:
        for one in rings:
            one.controller.set_faults([])
    assert (caught.value.sct, caught.value.sc) == (2, 0x81)
    assert lba <= caught.value.lba < lba + 3
    check(cuda, own_text, ("long", "number"), predicates, **settings)


@pytest.mark.parametrize("strategy", ["stream", "vectors"])
@pytest.mark.parametrize("part", ["offsets", "values", "validity"])
def test_strings_that_are_not_those_that_were_written(
    cuda: Any, own_text: Snapshot, part: str, strategy: str
) -> None:
    name = "holes"
    fragment = own_text.fragments[0]
    vector = fragment.rows // 4 // 1024  # one with nulls
    extent = getattr(fragment.layout.columns[fragment.column_index(name)], part)
    assert extent is not None
    size = {"offsets": 8192, "validity": 128}.get(part, extent.length // fragment.vector_count)
    predicates = [compare(own_text, "pick", "less", 0.5)]
    settings = {"strategy": strategy, "zone_maps": False}
    before = fragment.path.read_bytes()
    _flip(fragment, extent.offset + vector * size + 47, 1)
    what = {"offsets": "offsets", "values": "bytes", "validity": "validity bits"}[part]
    with pytest.raises(CorruptionError, match=f'column "{name}", vector \\d+: its {what} do not match'):
        run(cuda, own_text, (name,), predicates, **settings)
    _flip(fragment, extent.offset + vector * size + 47, 1)
    assert fragment.path.read_bytes() == before
    check(cuda, own_text, (name,), predicates, **settings)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("at", [5, 6, 7])
def test_offsets_that_lead_astray(cuda: Any, own_text: Snapshot, strategy: str, at: int) -> None:
    """Without checksums: an error, and nothing is read from where it should not be."""
    fragment = own_text.fragments[0]
    extent = fragment.layout.columns[fragment.column_index("long")].offsets
    assert extent is not None
    predicates = [compare(own_text, "pick", "less", 0.9)]
    settings = {"strategy": strategy, "zone_maps": False, "verify_checksums": False}
    check(cuda, own_text, ("long",), predicates, **settings)
    for row in (500, 1023, 1024, fragment.rows):
        _flip(fragment, extent.offset + 8 * row + at, 0x80)
        with pytest.raises(CorruptionError, match=r'column "long", vector .*offsets do not ascend'):
            run(cuda, own_text, ("long",), [], **settings)
        _flip(fragment, extent.offset + 8 * row + at, 0x80)
    check(cuda, own_text, ("long",), predicates, **settings)


def test_codes_beyond_their_dictionary(cuda: Any, own_text: Snapshot) -> None:
    fragment = own_text.fragments[0]
    extent = fragment.layout.columns[fragment.column_index("when")].values
    settings = {"verify_checksums": False}
    for at in (0, 3):  # too large, and negative
        _flip(fragment, extent.offset + 4 * 2000 + at, 0x80)
        with pytest.raises(CorruptionError, match='column "when" refers to values beyond its dictionary'):
            run(cuda, own_text, ("when",), [], **settings)
        _flip(fragment, extent.offset + 4 * 2000 + at, 0x80)
    check(cuda, own_text, ("when",), [], **settings)


def _of_dictionary(snapshot: Snapshot, name: str, value: str) -> Call:
    """`name = value`, as the binder compares dictionaries."""
    found: ColumnRef = column(snapshot, name)
    kind: Any = found.type
    literal = Literal(pa.scalar(value, kind.value_type))
    return Call("equal", (Cast(found, kind.value_type), literal), pa.bool_())


def _flip(fragment: Fragment, place: int, bits: int) -> None:
    """Change a byte of a fragment, or change it back."""
    with fragment.path.open("r+b") as file:
        file.seek(place)
        before = file.read(1)[0]
        file.seek(place)
        file.write(bytes([before ^ bits]))


def _rings_of(cuda: Any) -> list[Any]:
    from bamquery.engine.cuda.scan.resources.scan_resources import resources_of

    return list(resources_of(cuda.session)._rings.values())
