"""EXPLAIN and EXPLAIN ANALYZE as text: the tree of operators, and a table of columns under each scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bamquery.engine.human_units import human_bytes, human_count, human_rate, human_seconds, plural
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.scan.forecast import ColumnForecast
from bamquery.engine.operators.scan.stored_scan import StoredScan
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.profiling.query_profile import IoProfile, QueryProfile
from bamquery.engine.profiling.queue_profile import QueueProfile
from bamquery.engine.profiling.scan_profile import ColumnProfile, FileScanProfile, ScanProfile

if TYPE_CHECKING:
    from bamquery.storage.fragments.column_storage import ColumnStorage

_UNKNOWN = "-"


def explain_plan(root: Operator[Any], device: str, notes: Sequence[str] = ()) -> str:
    """The tree with what each scan is expected to do; zone maps are looked at, columns are not read."""
    lines = [f"device {device}", *(f"note: {note}" for note in notes)]

    def details(profile: OperatorProfile, operator: Operator[Any] | None) -> list[str]:
        if isinstance(operator, StoredScan) and isinstance(profile, ScanProfile):
            forecast = operator.forecast()
            expected = f"expected: {plural(forecast.rows, 'row')} of {plural(profile.rows_total, 'row')}"
            scan = scan_lines(profile, "yes" if profile.verify else "no")
            return [*scan, expected, *_forecast_table(profile, forecast.columns.values())]
        return detail_lines(profile)

    lines += _tree(root.profile, root, lambda profile: "", details)
    return "\n".join(lines)


def profile_lines(profile: QueryProfile) -> list[str]:
    """The run as a whole: what it took, what it read, and what did not go as asked."""
    head = f"device {profile.device}, {human_seconds(profile.seconds)}, {plural(profile.rows, 'row')}"
    if profile.peak_memory:
        head += f", operators held {human_bytes(profile.peak_memory)}"
    if profile.spilled:
        head += f", wrote {human_bytes(profile.spilled)} to files that did not fit"
    return [head, *io_lines(profile.io), *(f"note: {note}" for note in profile.notes)]


def explain_profile(profile: QueryProfile) -> str:
    """The tree with what was measured."""

    def details(one: OperatorProfile, operator: Operator[Any] | None) -> list[str]:
        if isinstance(one, ScanProfile):
            scanned = f"scanned {one.rows_scanned:,} of {plural(one.rows_total, 'row')}"
            table = _column_table(one)
            return [*scan_lines(one, one.verified), scanned, *table, *_queue_lines(one.queues)]
        return detail_lines(one)

    return "\n".join([*profile_lines(profile), *_tree(profile.root, None, _format_measured, details)])


def _format_measured(profile: OperatorProfile) -> str:
    return f"{plural(profile.rows, 'row')}, {human_seconds(profile.seconds)}"


def _tree(
    profile: OperatorProfile,
    operator: Operator[Any] | None,
    figures: Callable[[OperatorProfile], str],
    details: Callable[[OperatorProfile, Operator[Any] | None], list[str]],
) -> list[str]:
    """One line an operator, what there is to say of it below, children indented."""
    name = profile.name
    if isinstance(profile, ScanProfile):
        name += f" {profile.source} (version {profile.version})"
    elif isinstance(profile, FileScanProfile):
        name += f" {profile.source}"
    measured = figures(profile)
    lines = [f"{name}  ({measured})" if measured else name]
    below = operator.children if operator is not None else [None] * len(profile.children)
    has_children = bool(profile.children)
    lines += [f"{'│' if has_children else ' '}    {line}" for line in details(profile, operator)]
    for number, (child, child_operator) in enumerate(zip(profile.children, below, strict=True)):
        last = number == len(profile.children) - 1
        subtree = _tree(child, child_operator, figures, details)
        lines.append(f"{'└─' if last else '├─'} {subtree[0]}")
        lines += [f"{'  ' if last else '│ '} {line}" for line in subtree[1:]]
    return lines


def io_lines(io: IoProfile) -> list[str]:
    """What was read, and of which files nobody counts it."""
    lines = []
    if io.readers:
        amplification = _UNKNOWN if io.amplification is None else f"{io.amplification:.2f}"
        line = (
            f"I/O ({', '.join(io.readers)}): needed {human_bytes(io.bytes_needed)}, "
            f"read {human_bytes(io.bytes_read)}, amplification {amplification}, "
            f"{plural(io.commands, 'command')} for {plural(io.blocks, 'block')}"
        )
        if io.iops is not None and io.bytes_per_second is not None:
            line += (
                f" in {human_seconds(io.seconds)}: {human_count(io.iops)} IOPS, "
                f"{human_rate(io.bytes_per_second)}"
            )
        lines.append(line)
    if io.uncounted:
        lines.append(f"I/O of files is not counted: {', '.join(io.uncounted)}")
    return lines


def scan_lines(profile: ScanProfile, verified: str) -> list[str]:
    """What a scan says of itself, but for its columns."""
    asked = "" if profile.strategy == "auto" else f", strategy asked for: {profile.strategy}"
    return [
        *detail_lines(profile),
        f"{profile.reader_path} reads of {human_bytes(profile.block_size)} blocks, "
        f"zone maps {'on' if profile.zone_maps else 'off'}, checksums verified: {verified}{asked}",
        *_volume_lines(profile.volume),
        *(f"note: {note}" for note in profile.notes),
    ]


def _volume_lines(volume: Mapping[str, Any]) -> list[str]:
    if not volume:
        return []
    return [
        f"volume ({volume['source']}): {human_rate(volume['bandwidth'])}, "
        f"{human_count(volume['iops'])} scattered reads a second, {human_seconds(volume['latency'])} each"
    ]


def detail_lines(profile: OperatorProfile) -> list[str]:
    """What the operator says of itself, where it says something."""
    lines = []
    for name, value in profile.details.items():
        if not value and value is not False:
            continue
        if name.endswith("memory") or name == "spilled":
            text = human_bytes(value)
        else:
            text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        lines.append(f"{name.replace('_', ' ')}: {text}")
    return lines


def _queue_lines(queues: QueueProfile | None) -> list[str]:
    """What a GPU did through queue pairs, where it did something."""
    if queues is None or not queues.commands:
        return []
    figures = [f"{human_count(queues.commands)} commands, {human_bytes(queues.bytes)}"]
    if queues.iops is not None and queues.bytes_per_second is not None:
        figures[0] += f" in {human_seconds(queues.kernel_seconds)}"
        figures.append(f"{queues.iops / 1e6:.2f} MIOPS, {human_rate(queues.bytes_per_second)}")
    if queues.mean_depth is not None:
        figures.append(f"{queues.mean_depth:.0f} in flight in {queues.pairs} pairs of depth {queues.depth}")
    if queues.waited_share is not None:
        figures.append(f"warps waited {queues.waited_share:.0%} of their time")
    if queues.controller_cores is not None:
        figures.append(f"controller {queues.controller_cores:.1f} cores")
    drives = [
        f"drive {number}: {human_count(drive.commands)} commands, {human_bytes(drive.bytes)}"
        for number, drive in enumerate(queues.drives)
    ]
    return [f"queue pairs: {'; '.join(figures)}", *(drives if len(drives) > 1 else [])]


_STORAGE_TITLES = ("bits", "stored", "decoded")


def _storage_cells(storage: ColumnStorage) -> tuple[str, str, str]:
    """Bits a value, bytes of the whole column in its files, and as plain Arrow."""
    bits = _UNKNOWN if storage.bits is None else f"{storage.bits:.3g}"
    return bits, human_bytes(storage.stored_bytes), human_bytes(storage.plain_bytes)


def _column_table(scan: ScanProfile) -> list[str]:
    columns: list[ColumnProfile] = list(scan.columns.values())
    header = ("column", "role", "strategy", "encoding", *_STORAGE_TITLES)
    read = ("vectors pruned", "read", "of", "needed", "bytes read")
    more = ("amplification", "commands", "blocks", "IOPS", "speed", "planned", "took")
    with_paths = any(column.paths for column in columns)
    in_parts = any(column.parts_pruned for column in columns)
    on_codes = any(column.vectors_compared for column in columns)
    rows = []
    for column in columns:
        ratio = column.amplification
        seconds = column.clock.seconds
        counters = column.counters
        storage = scan.storage(column.name)
        rows.append(
            (
                column.name,
                column.role,
                column.strategy or _UNKNOWN,
                storage.encoding,
                *_storage_cells(storage),
                human_count(column.vectors_pruned),
                human_count(column.vectors_read),
                human_count(column.vectors_total),
                human_bytes(column.bytes_needed),
                human_bytes(counters.bytes),
                _UNKNOWN if ratio is None else f"{ratio:.2f}",
                human_count(counters.commands),
                human_count(counters.blocks),
                human_count(counters.commands / seconds) if seconds and counters.commands else _UNKNOWN,
                human_rate(counters.bytes / seconds) if seconds and counters.bytes else _UNKNOWN,
                human_seconds(column.planned.expected) if column.planned.taken else _UNKNOWN,
                human_seconds(column.planned.taken) if column.planned.taken else _UNKNOWN,
                *([human_count(column.parts_pruned)] * in_parts),
                *([human_count(column.vectors_compared)] * on_codes),
                *([", ".join(name for name, _ in column.paths.most_common()) or _UNKNOWN] * with_paths),
            )
        )
    extra = (["parts pruned"] * in_parts, ["compared as codes"] * on_codes, ["path"] * with_paths)
    titles = (*header, *read, *more, *(title for titles in extra for title in titles))
    return align_columns(titles, rows, left=4)


def _forecast_table(scan: ScanProfile, columns: Iterable[ColumnForecast]) -> list[str]:
    header = ("column", "role", "strategy", "encoding", *_STORAGE_TITLES)
    expected = ("vectors pruned", "of", "to read", "planned")
    rows = [
        (
            column.name,
            column.role,
            ", ".join(strategy.value for strategy, _ in column.strategies.most_common()) or _UNKNOWN,
            scan.storage(column.name).encoding,
            *_storage_cells(scan.storage(column.name)),
            human_count(column.vectors_pruned),
            human_count(column.vectors_total),
            human_bytes(column.bytes),
            human_seconds(column.seconds),
        )
        for column in columns
    ]
    return align_columns((*header, *expected), rows, left=4)


def align_columns(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Lines of a table without rules; the first `left` columns flush left, the others right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    return [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (header, *rows)
    ]
