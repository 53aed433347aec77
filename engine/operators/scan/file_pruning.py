"""Which files a scan has to open, told by columns whose value in each file is known beforehand.

Such are the keys of folders (`year=2024/`) and the files' paths. Conditions are computed for each file once,
on the CPU, whatever computes the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from bamquery.engine.host_evaluation import is_computable, matching_rows
from bamquery.engine.sources.scan_predicates import conjunction, rebase
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, Expression, Literal, referenced_columns
from bamquery.storage.ingest.sources.source import IngestSource

_TRUE = Literal(pa.scalar(True))


def files_to_read(
    source: IngestSource, conditions: Iterable[Expression], files: Sequence[int] | None = None
) -> Sequence[int] | None:
    """The files, of those given, that may have rows for which all conditions are true; None: all there are.

    A condition that cannot be computed for some file excludes none: it fails where that file's rows are read.
    """
    if source.file_count == 1 and files is None and not source.file_columns:
        return None
    known = frozenset(source.file_columns)
    for condition in conditions:
        weaker = _file_condition(condition, known)
        if weaker == _TRUE:
            continue
        columns = sorted(referenced_columns(weaker))
        kept = _evaluate_truth(rebase(weaker, columns), source.file_values(columns))
        if kept is not None:
            files = sorted(kept if files is None else kept.intersection(files))
    return files


def _file_condition(condition: Expression, known: frozenset[int]) -> Expression:
    """What a condition demands of these columns: it is true wherever the condition is."""
    if isinstance(condition, Call) and condition.function in ("and", "or"):
        operands = [_file_condition(operand, known) for operand in condition.arguments]
        if condition.function == "or" and _TRUE in operands:
            return _TRUE
        operands = [operand for operand in operands if operand != _TRUE]
        if not operands:
            return _TRUE
        return (
            conjunction(operands) if condition.function == "and" else Call("or", tuple(operands), pa.bool_())
        )
    read = referenced_columns(condition)
    return condition if read and known.issuperset(read) else _TRUE


def _evaluate_truth(condition: Expression, values: pa.RecordBatch) -> set[int] | None:
    """Rows of `values` for which it is true; None where it fails for some."""
    if not is_computable(condition):
        return None
    try:
        return set(matching_rows(condition, values).tolist())
    except ExecutionError:
        return None
