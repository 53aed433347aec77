"""Columns whose rows are picked once somebody looks at them.

What stays in the GPU's memory anyway, columns of the cache and dictionaries, need not be copied by each
filter and join that picks rows of it: these pass on which rows they are, four bytes a row for all columns
together. A column that nobody looks at is never copied, and one that is wanted for the answer's rows is
copied for those only. Decimals that stay in 64 bits come to have 128 by that copy, and nowhere else.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.libcudf_types import is_narrow, wide_type
from bamquery.plan.expressions import Expression

if TYPE_CHECKING:
    from bamquery.engine.cuda.kernels import Kernels

_KEPT: Final = 32
"""Answers of a dictionary's values: a megabyte each at most, mostly less than a kilobyte."""
_FEW_OF: Final = 4
"""Part of the rows up to which they are few."""
_BEYOND: Final = 2**31 - 1
"""A place that no source has, since columns have fewer rows: the row is null."""


Number: TypeAlias = "Callable[[plc.Column], tuple[plc.Column, int]]"
"""Numbers the values of a column: int32, equal where values are; and how many numbers there are."""


class RowPlaces:
    """Places of rows in their source, int32 without nulls, found when they are asked for.

    Attributes:
        rows: how many.
        nulls: whether some may be beyond the source: these rows are null.
        at_end: whether those are right behind its last one.
        begin: where the rows begin that follow each other in the source; None: they do not.
        whole: whether they are all of the source.
    """

    def __init__(
        self,
        rows: int,
        find: Callable[[], plc.Column],
        *,
        nulls: bool = False,
        at_end: bool = False,
        begin: int | None = None,
        whole: bool = False,
    ) -> None:
        self.rows = rows
        self.nulls = nulls
        self.at_end = at_end
        self.begin = begin
        self.whole = whole
        self._find = find
        self._column: plc.Column | None = None
        self._chosen: tuple[RowPlaces, plc.Column] | None = None

    @classmethod
    def run(cls, kernels: Kernels, begin: int, rows: int, *, whole: bool = False) -> RowPlaces:
        """Rows that follow each other."""
        return cls(rows, lambda: kernels.positions(rows, begin), begin=begin, whole=whole)

    @classmethod
    def listed(cls, column: plc.Column, *, nulls: bool, at_end: bool = False) -> RowPlaces:
        """Those of a column."""
        return cls(column.size(), lambda: column, nulls=nulls, at_end=at_end)

    @property
    def column(self) -> plc.Column:
        """The places."""
        found = self._column
        if found is None:
            found = self._column = self._find()
            self._find = lambda: found  # what it was found from may go
            self._chosen = None
        return found

    @property
    def chosen(self) -> tuple[plc.Column, plc.Column] | None:
        """Places of other rows, and which of these rows have the places here; None: see `column`."""
        chosen = self._chosen  # another thread may look for the column
        return None if chosen is None else (chosen[0].column, chosen[1])

    def take(self, kernels: Kernels, positions: plc.Column, *, nullify: bool) -> RowPlaces:
        """The places of some of the rows, by position; beyond the last row are nulls, if `nullify`."""
        if self.whole:
            return RowPlaces.listed(positions, nulls=nullify)

        def find() -> plc.Column:
            source, rows = (self.column, positions) if nullify else self._few(kernels, positions)
            (places,) = kernels.gather([source], rows, nullify=nullify)
            return kernels.fill_null(places, kernels.number(_BEYOND, pa.int32())) if nullify else places

        at_end = self.at_end and not nullify
        found = RowPlaces(positions.size(), find, nulls=self.nulls or nullify, at_end=at_end)
        if not nullify:
            found._chosen = self, positions
        return found

    def _few(self, kernels: Kernels, positions: plc.Column) -> tuple[plc.Column, plc.Column]:
        """A column of places, and where it has those of rows at positions: not all are copied for a few."""
        chosen = None if _FEW_OF * positions.size() > self.rows else self.chosen
        if chosen is None:
            return self.column, positions
        column, rows = chosen
        return column, kernels.gather([rows], positions)[0]

    def clamp(self, kernels: Kernels, end: int) -> plc.Column:
        """The places in a source of so many rows; those of rows that are null are right behind it."""
        if not self.nulls or self.at_end:
            return self.column
        last = kernels.number(end, pa.int32())
        beyond = kernels.test(plc.binaryop.BinaryOperator.GREATER, self.column, last)
        return kernels.where(beyond, last, self.column)

    def slice(self, kernels: Kernels, start: int, end: int) -> RowPlaces:
        """Those of the rows from `start` to before `end`."""
        if self.begin is not None:
            return RowPlaces.run(kernels, self.begin + start, end - start)
        return RowPlaces(
            end - start,
            lambda: kernels.slice_column(self.column, start, end),
            nulls=self.nulls,
            at_end=self.at_end,
        )


def _join_places(kernels: Kernels, places: Sequence[RowPlaces]) -> RowPlaces:
    rows = sum(one.rows for one in places)
    return RowPlaces(
        rows,
        lambda: kernels.concatenate([one.column for one in places]),
        nulls=any(one.nulls for one in places),
        at_end=all(one.at_end or not one.nulls for one in places),
    )


class KnownAnswers:
    """Values of expressions over a dictionary, those that were asked last; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[Expression, bool], plc.Column] = OrderedDict()

    def find(self, key: tuple[Expression, bool]) -> plc.Column | None:
        """Of an expression, and with or without its value of null."""
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
            return found

    def keep(self, key: tuple[Expression, bool], column: plc.Column) -> None:
        """For whoever asks next."""
        with self._lock:
            self._held[key] = column
            if len(self._held) > _KEPT:
                self._held.popitem(last=False)


class Dictionary:
    """Values that rows of columns refer to.

    Attributes:
        values: not null; some may be there twice.
        host: the same, in the host's memory.
        distinct: whether none is.
        answers: what expressions were found to be of them.
    """

    def __init__(self, values: plc.Column, host: pa.Array[Any]) -> None:
        self.values: Final = values
        self.host: Final = host
        self.distinct: Final = len(host.unique()) == len(host)
        self.answers: Final = KnownAnswers()
        self._numbered: tuple[plc.Column, int] | None = None

    @property
    def size(self) -> int:
        """How many values."""
        return self.values.size()

    @property
    def numbers(self) -> plc.Column | None:
        """For each value a number, equal where values are, once they were counted; None: its place."""
        return None if self._numbered is None else self._numbered[0]

    def count_distinct(self, number: Number) -> int:
        """How many different values there are."""
        if self.distinct:
            return self.size
        if self._numbered is None:
            self._numbered = number(self.values)
        return self._numbered[1]

    def key_codes(self, kernels: Kernels, places: RowPlaces, number: Number) -> plc.Column:
        """A number for each place, equal where the values are; int32 without nulls, which have their own."""
        found = places.column
        if not self.distinct:
            self.count_distinct(number)
            numbers = self.numbers
            assert numbers is not None
            (found,) = kernels.gather([numbers], found, nullify=places.nulls)
            if places.nulls:
                return kernels.fill_null(found, kernels.number(_BEYOND, pa.int32()))
        elif places.nulls:
            # A row that is null may be at any place beyond the last one.
            return places.clamp(kernels, self.size)
        return found


class LateColumn:
    """Rows of a source, which somebody keeps. They are copied once, when they are first looked at.

    Attributes:
        source: a column; its decimals may be narrow.
        places: which rows of it.
        dictionary: the source as a dictionary, if it is one.
    """

    def __init__(
        self, kernels: Kernels, source: plc.Column, places: RowPlaces, dictionary: Dictionary | None = None
    ) -> None:
        self._kernels = kernels
        self.source: Final = source
        self.places: Final = places
        self.dictionary: Final = dictionary
        self._stored: plc.Column | None = None
        self._made: plc.Column | None = None

    def size(self) -> int:
        """Rows."""
        return self.places.rows

    def type(self) -> plc.DataType:
        """Of the values."""
        return wide_type(self.source.type())

    @property
    def is_made(self) -> bool:
        """Whether `stored` has been copied, or needs no copy."""
        return self._made is not None or self._stored is not None or self.places.begin is not None

    @property
    def stored(self) -> plc.Column:
        """The rows' values as programs load them: decimals in 64 bits, where nobody had them made wide."""
        if self._made is not None and self.places.begin is None:
            return self._made
        found = self._stored
        if found is None:
            found = self._stored = self._pick()
        return found

    @property
    def column(self) -> plc.Column:
        """The rows' values."""
        found = self._made
        if found is None:
            found = self._made = self._kernels.convert(self.stored, self.type())
            self._stored = None
        return found

    def _pick(self) -> plc.Column:
        kernels, places = self._kernels, self.places
        if places.begin is not None:
            return kernels.slice_column(self.source, places.begin, places.begin + places.rows)
        (found,) = kernels.gather([self.source], places.column, nullify=places.nulls)
        return found

    def move(self, places: RowPlaces) -> LateColumn:
        """The same source's rows elsewhere."""
        return LateColumn(self._kernels, self.source, places, self.dictionary)


def all_rows(kernels: Kernels, column: plc.Column) -> LateColumn:
    """All rows of a column, as frames have those that are narrow."""
    return LateColumn(kernels, column, RowPlaces.run(kernels, 0, column.size(), whole=True))


Held: TypeAlias = "plc.Column | LateColumn"
"""A column of a frame."""


def column_of(held: Held) -> plc.Column:
    """Its values."""
    return held.column if isinstance(held, LateColumn) else held


def take_rows(
    kernels: Kernels, columns: Sequence[Held], positions: plc.Column, *, nullify: bool = False
) -> list[Held]:
    """Rows at positions (not null), of late columns late; nulls for those out of bounds, if `nullify`."""
    now = [column for column in columns if not isinstance(column, LateColumn)]
    gathered = iter(kernels.gather(now, positions, nullify=nullify) if now else ())
    moved: dict[int, RowPlaces] = {}
    found: list[Held] = []
    for column in columns:
        if not isinstance(column, LateColumn):
            found.append(next(gathered))
            continue
        places = column.places
        if id(places) not in moved:
            moved[id(places)] = places.take(kernels, positions, nullify=nullify)
        found.append(column.move(moved[id(places)]))
    return found


def slice_rows(kernels: Kernels, columns: Sequence[Held], start: int, end: int) -> list[Held]:
    """Rows from `start` to before `end`, without a copy."""
    moved: dict[int, RowPlaces] = {}
    found: list[Held] = []
    for column in columns:
        if not isinstance(column, LateColumn):
            found.append(kernels.slice_column(column, start, end))
            continue
        if (start, end) == (0, column.size()):
            found.append(column)
            continue
        places = column.places
        if id(places) not in moved:
            moved[id(places)] = places.slice(kernels, start, end)
        found.append(column.move(moved[id(places)]))
    return found


def concatenate_rows(kernels: Kernels, frames: Sequence[Sequence[Held]]) -> list[Held]:
    """Each column's rows of all frames, in order; late where all are, and of one source, or narrow."""
    joined: dict[tuple[int, ...], RowPlaces] = {}
    whole = RowPlaces.run(kernels, 0, sum(columns[0].size() for columns in frames if columns), whole=True)
    found: list[Held] = []
    for columns in zip(*frames, strict=True):
        late = [column for column in columns if isinstance(column, LateColumn)]
        if len(late) < len(columns) or any(column.source is not late[0].source for column in late):
            narrow = _narrow_rows(late) if len(late) == len(columns) else None
            if narrow is not None:
                found.append(LateColumn(kernels, kernels.concatenate(narrow), whole))
            else:
                found.append(kernels.concatenate([column_of(column) for column in columns]))
            continue
        key = tuple(id(column.places) for column in late)
        if key not in joined:
            joined[key] = _join_places(kernels, [column.places for column in late])
        found.append(late[0].move(joined[key]))
    return found


def _narrow_rows(columns: Sequence[LateColumn]) -> list[plc.Column] | None:
    """The columns' rows, if all are narrow; None: some are not, or not any more."""
    if not all(is_narrow(column.source.type()) for column in columns):
        return None
    rows = [column.stored for column in columns]
    return rows if all(is_narrow(one.type()) for one in rows) else None
