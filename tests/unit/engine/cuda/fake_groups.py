"""What libcudf makes of many values: one of all, of each group, of all before a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.unit.engine.cuda.fake_columns import (
    FLOATS,
    INT32,
    Column,
    NullPolicy,
    OutOfBoundsPolicy,
    Scalar,
    Table,
    wrapped,
)
from tests.unit.engine.cuda.fake_functions import _hashable, gather


def _total(values, kind):
    if kind.id() in FLOATS:
        return _ieee_sum(values)
    return sum(values)


def _ieee_sum(values):
    with np.errstate(all="ignore"):
        return float(np.sum(np.array(values, np.float64)))


def count(nulls=NullPolicy.EXCLUDE):
    return "count" if nulls == NullPolicy.EXCLUDE else "count_all"


def _aggregated(name, values, kind):
    if name == "count_all":
        return len(values)
    values = [v for v in values if v is not None]
    if name == "count":
        return len(values)
    if not values:
        return None
    return {"sum": lambda: _total(values, kind), "min": lambda: min(values), "max": lambda: max(values),
            "any": lambda: any(values)}[name]()  # fmt: skip


def reduce(column, aggregation, kind, stream=None, mr=None):
    return Scalar(kind, wrapped(_aggregated(aggregation, column.values(), kind), kind))


def minmax(column, stream=None, mr=None):
    return reduce(column, "min", column.type()), reduce(column, "max", column.type())


class GroupByRequest:
    def __init__(self, values, aggregations):
        self.values, self.aggregations = values, aggregations


class GroupBy:
    def __init__(self, keys, null_handling=NullPolicy.EXCLUDE, keys_are_sorted=None):
        self._keys, self._nulls = keys, null_handling
        self._sorted = keys_are_sorted is not None and keys_are_sorted.name == "YES"

    def scan(self, requests, stream=None, mr=None):
        (keys,) = self._keys.columns()
        codes = keys.values()
        assert self._sorted
        assert codes == sorted(codes)
        results = []
        for request in requests:
            (name,) = request.aggregations
            kind, values = request.values.type(), request.values.values()
            found = []
            for code in dict.fromkeys(codes):
                found += _running(name, [v for c, v in zip(codes, values, strict=True) if c == code], kind)
            results.append(Table([Column.from_values(found, kind)]))
        return self._keys, results

    def aggregate(self, requests, stream=None, mr=None):
        rows = self._keys.rows()
        left_out = [self._nulls == NullPolicy.EXCLUDE and None in row for row in rows]
        first: dict[Any, int] = {}
        for i, row in enumerate(rows):
            if not left_out[i]:
                first.setdefault(_hashable(row), i)
        first = dict(reversed(first.items()))  # any order but theirs
        results = []
        for request in requests:
            groups: dict[Any, list[Any]] = {row: [] for row in first}
            for row, out, value in zip(rows, left_out, request.values.values(), strict=True):
                if not out:
                    groups[_hashable(row)].append(value)
            kind = request.values.type()
            (name,) = request.aggregations
            found = [_aggregated(name, groups[row], kind) for row in first]
            results.append(Table([Column.from_values(found, INT32 if name.startswith("count") else kind)]))
        keys = gather(
            self._keys, Column.from_values(list(first.values()), INT32), OutOfBoundsPolicy.DONT_CHECK
        )
        return keys, results


def _running(name, values, kind):
    found, so_far = [], []
    for value in values:
        so_far.append(value)
        found.append(None if value is None else _aggregated(name, so_far, kind))
    return found


def scan(column, aggregation, inclusive, stream=None, mr=None):
    assert inclusive.name == "INCLUSIVE"
    kind = column.type()
    if aggregation == "sum":
        assert not column.null_count()
        return Column.from_values(np.cumsum(np.array(column.values())).tolist(), kind)
    return Column.from_values(_running(aggregation, column.values(), kind), kind)
