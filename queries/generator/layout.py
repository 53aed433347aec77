"""Where a row lies: in which month's file, whether in its tail, and at what time the trip began.

The rows of `order="time"` are months one after the other. Within a month's file the time of a row follows the
frequencies of weekdays and hours, with a little disorder: about 53 % of neighbours ascend, as in the real
files. Files from July 2019 on end in rows that lack what the meter did not send (passenger count and so on);
their times run over the month once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bamquery.queries.generator.hashing import Words, bits
from bamquery.queries.generator.lookup import Steps
from bamquery.queries.generator.measured import load_measured
from bamquery.queries.generator.years import TAILS, YEARS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_EPOCH: Final = datetime(1970, 1, 1)
# Displacement of rows from the order of time, in rows: half of them up to 5, half up to 90 either way. The
# small half makes 53 % of neighbours ascend, the large one gives displacements like the real ones.
_NEAR: Final = 5.0
_FAR: Final = 90.0


@dataclass(frozen=True)
class Places:
    """Of each row of a chunk, where it lies.

    Attributes:
        month: the file, counted from the first.
        in_tail: whether the row is one of those that lack what the meter did not send.
        along: the file plus how far along its month the trip began, from 0 to 1.
    """

    month: NDArray[np.int32]
    in_tail: NDArray[np.bool_]
    along: Floats


class Layout:
    """The files of a range of years and how many of `rows` rows each has.

    Attributes:
        rows: of all files together.
        months: (year, month from 1) of each file.
        first_row: of each file, and `rows` at the end.
        tail_rows: of each file.
    """

    def __init__(self, rows: int, first_year: int, last_year: int) -> None:
        """Share the rows out in proportion to the real numbers of trips."""
        years = range(first_year, last_year + 1)
        assert all(year in YEARS for year in years), "the command line checks"
        self.rows = rows
        self.months = [(year, month) for year in years for month in range(1, 13)]
        trips = np.array([load_measured().trips_by_month[year][month - 1] for year, month in self.months])
        shares = np.concatenate(([0.0], np.cumsum(trips) / trips.sum()))
        self.first_row: Ints = np.rint(shares * rows).astype(np.int64)
        tails = np.array([TAILS.get(year, (0.0,) * 12)[month - 1] for year, month in self.months])
        self.tail_rows: Ints = np.rint(np.diff(self.first_row) * tails).astype(np.int64)
        self._file_of_row = Steps(self.first_row)
        self._body_rows = np.diff(self.first_row) - self.tail_rows
        self._fill_hours()

    def _fill_hours(self) -> None:
        """Cut every month into hours, each as wide on the scale of `along` as its share of the trips."""
        frequencies = np.array(load_measured().trips_by_weekday_and_hour, np.float64)
        edges: list[Floats] = []
        kinds: list[Ints] = []
        starts: list[Ints] = []
        for place, (year, month) in enumerate(self.months):
            start = datetime(year, month, 1)
            end = datetime(year + month // 12, month % 12 + 1, 1)
            hours = np.arange((end - start) // timedelta(hours=1))
            weekdays = (start.weekday() + hours // 24) % 7
            weights = frequencies[weekdays, hours % 24]
            cumulated = np.cumsum(weights) / weights.sum()
            edges.append(place + np.concatenate(([0.0], cumulated[:-1])))
            kinds.append(weekdays * 24 + hours % 24)
            starts.append((start - _EPOCH) // timedelta(seconds=1) + hours * 3600)
        self._edges = np.concatenate([*edges, [float(len(self.months))]])
        self._hour_of_place = Steps(self._edges)
        self._hour_of_week = np.concatenate(kinds).astype(np.int32)
        self._hour_start = np.concatenate(starts)

    def places(self, rows: Words, random: Words) -> Places:
        """Where rows lie; `random` disturbs their order in time a little."""
        numbers = rows.astype(np.int64)
        month = self._file_of_row.find(numbers)
        position = numbers - self.first_row[month]
        body = self._body_rows[month]
        in_tail = position >= body
        length = np.where(in_tail, self.tail_rows[month], body)
        position -= np.where(in_tail, body, 0)
        far = bits(random, 0, 1).astype(np.float64)
        jitter = (bits(random, 1, 24) * 2.0**-23 - 1.0) * (_NEAR + (_FAR - _NEAR) * far)
        along = (position + 0.5 + jitter) / length
        # Reflected at the ends of the month, so that no time is commoner there.
        along = np.abs(along)
        along = np.minimum(along, np.abs(2.0 - along))
        np.clip(along, 0.0, 1.0 - 2.0**-30, out=along)
        return Places(month, in_tail, month + along)

    def hours(self, places: Places) -> NDArray[np.int32]:
        """For each row the place of its hour in the list of all hours."""
        return self._hour_of_place.find(places.along)

    def hour_of_week(self, hours: NDArray[np.int32]) -> NDArray[np.int32]:
        """0 for Monday from midnight to one, 167 for the last hour of Sunday."""
        found: NDArray[np.int32] = self._hour_of_week[hours]
        return found

    def seconds(self, places: Places, hours: NDArray[np.int32]) -> Ints:
        """Local time of the trips' beginnings, as seconds since 1970."""
        start = self._edges[hours]
        share = (places.along - start) / (self._edges[hours + 1] - start)
        seconds: Ints = self._hour_start[hours] + np.minimum(share * 3600.0, 3599.0).astype(np.int64)
        return seconds
