"""Conditions on columns that are stored as codes: which of these pass, so that no row need be decoded."""

from __future__ import annotations

import functools
import threading
from typing import Any, Final, Generic
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.device import Device, Frame
from bamquery.engine.operators.scan.filter_order import FilterStep
from bamquery.engine.operators.scan.open_fragments import OpenFragment
from bamquery.engine.pipeline.outputs import may_be_kept
from bamquery.engine.sources.key_conditions import key_condition
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, Expression, walk
from bamquery.plan.interning import DIFFERENT_EACH_TIME
from bamquery.storage.format.storable_types import stored_index
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.statistics.order_keys import KeyCondition, key_bits

_KEPT: Final = 256
"""Answers for steps and dictionaries, beyond which they are found anew: some steps live for a chunk only."""

_SHORT: Final = 256
"""Intervals of an answer that is kept for the next run."""

_ANSWERS: Final[WeakKeyDictionary[Fragment, dict[tuple[str, Expression], KeyCondition]]] = WeakKeyDictionary()
"""Of dictionaries, by column and condition."""
_lock: Final = threading.Lock()

_known_condition: Final = functools.lru_cache(maxsize=_KEPT)(key_condition)


class CodeConditions(Generic[Frame]):
    """What the steps of one scan are to codes. Thread-safe."""

    def __init__(self, device: Device[Frame]) -> None:
        self._device = device
        self._of_values: dict[int, tuple[FilterStep, KeyCondition | str]] = {}
        self._of_dictionaries: dict[tuple[int, str], tuple[FilterStep, KeyCondition | str]] = {}

    def find(
        self,
        step: FilterStep,
        column: str,
        fragment: Fragment,
        opened: OpenFragment[Frame],
        counters: ReadCounters,
    ) -> KeyCondition | str:
        """Which codes of a fragment's column pass a step that reads only that one, or why codes do not tell.

        A dictionary is asked value by value, whatever the condition is; `counters` get its first read.
        """
        layout = fragment.layout.columns[fragment.column_index(column)]
        if layout.dictionary is None:
            kind = fragment.schema.field(fragment.column_index(column)).type
            with _lock:
                known = self._of_values.get(id(step))
            if known is None or known[0] is not step:
                lasts = may_be_kept([step.predicate])
                find = _known_condition if lasts else key_condition
                known = step, find(step.predicate, kind)
                self._keep(self._of_values, id(step), known)
            return known[1]
        key = id(step), fragment.id
        with _lock:
            known = self._of_dictionaries.get(key)
        if known is None or known[0] is not step:
            known = step, self._of_dictionary(step, column, fragment, opened, counters)
            self._keep(self._of_dictionaries, key, known)
        return known[1]

    def _of_dictionary(
        self,
        step: FilterStep,
        column: str,
        fragment: Fragment,
        opened: OpenFragment[Frame],
        counters: ReadCounters,
    ) -> KeyCondition | str:
        """What a dictionary's values answer, kept with the fragment: the next run asks the same."""
        if not may_be_kept([step.predicate]):
            return self._ask_dictionary(step, column, fragment, opened, counters)
        key = column, step.predicate
        with _lock:
            answers = _ANSWERS.setdefault(fragment, {})
            known = answers.get(key)
        if known is not None:
            return known
        found = self._ask_dictionary(step, column, fragment, opened, counters)
        if isinstance(found, KeyCondition) and len(found.intervals) <= _SHORT:
            self._keep(answers, key, found)
        return found

    @staticmethod
    def _keep(answers: dict[Any, Any], key: Any, answer: Any) -> None:
        # A step is kept with its answer, so that its identity stays its own.
        with _lock:
            if len(answers) >= _KEPT:
                answers.clear()
            answers[key] = answer

    def _ask_dictionary(
        self,
        step: FilterStep,
        column: str,
        fragment: Fragment,
        opened: OpenFragment[Frame],
        counters: ReadCounters,
    ) -> KeyCondition | str:
        if any(isinstance(e, Call) and e.function in DIFFERENT_EACH_TIME for e in walk(step.predicate)):
            return "its condition draws at random for each row"
        values = opened.columns.dictionary(column, counters)
        assert values is not None
        size = len(values)
        kind: Any = fragment.schema.field(fragment.column_index(column)).type
        every: Any
        if pa.types.is_dictionary(kind):
            is_null = np.arange(size + 1) == size
            places: Any = pa.array(np.where(is_null, 0, np.arange(size + 1)), kind.index_type, mask=is_null)
            every = pa.DictionaryArray.from_arrays(places, values)
        else:
            every = pa.concat_arrays([values, pa.nulls(1, kind)])
        device = self._device
        try:
            found = device.matching_positions(step.predicate, device.from_columns([every]))
        except ExecutionError:
            # Rows with that value may be none, or may have failed another condition.
            return "its condition is an error for some value of the dictionary"
        passing = device.read_positions(found)
        codes = passing[passing < size]
        return KeyCondition(
            _intervals(codes, stored_index(kind, has_dictionary=True)), len(codes) < len(passing)
        )


def _intervals(codes: NDArray[np.int64], kind: pa.DataType) -> tuple[tuple[int, int], ...]:
    """Ascending codes as intervals of their keys."""
    if not len(codes):
        return ()
    zero = 1 << (key_bits(kind) - 1) if pa.types.is_signed_integer(kind) else 0
    ends = np.flatnonzero(np.diff(codes) != 1)
    lows, highs = codes[np.concatenate([[0], ends + 1])], codes[np.concatenate([ends, [len(codes) - 1]])]
    return tuple((zero + low, zero + high) for low, high in zip(lows.tolist(), highs.tolist(), strict=True))
