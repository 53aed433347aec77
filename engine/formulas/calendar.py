"""The proleptic Gregorian calendar on whole columns of days since 1970-01-01, for every device.

A device brings four functions of its own integers, which compute with `+ - * // %` and `>` as numpy's do;
everything else follows from those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

Days: TypeAlias = Any
"""A column of 64-bit integers of a device, and what comes out of computing with it."""

Part: TypeAlias = Callable[[Days], Days]


class Calendar:
    """Parts of dates, and the first days of what dates are in.

    Args:
        months_of: months since January 1970, of days.
        first_day_of_month: the day on which a month, counted so, begins.
        truncated: a quotient toward zero, of integers and a constant.
        flags: 1 where a condition is true, else 0; given integers of the same rows, too.
    """

    def __init__(
        self,
        months_of: Part,
        first_day_of_month: Part,
        truncated: Callable[[Days, int], Days],
        flags: Callable[[Days, Any], Days],
    ) -> None:
        self._months_of = months_of
        self._first_day_of_month = first_day_of_month
        self._truncated = truncated
        self._flags = flags
        self.parts: Final[Mapping[str, Part]] = MappingProxyType(
            {
                "year": self.year_of,
                "quarter": lambda days: months_of(days) % 12 // 3 + 1,
                "month": lambda days: months_of(days) % 12 + 1,
                "day": lambda days: days - first_day_of_month(months_of(days)) + 1,
                "dayofweek": lambda days: self.iso_weekday(days) % 7,
                "isodow": self.iso_weekday,
                "dayofyear": lambda days: days - self.first_day_of_year(days) + 1,
                "week": self.iso_week,
                "isoyear": self.iso_year,
                "yearweek": self._year_and_week,
                "decade": lambda days: truncated(self.year_of(days), 10),
                "century": lambda days: self._counted_from_one(days, 100),
                "millennium": lambda days: self._counted_from_one(days, 1000),
                "era": lambda days: flags(days, self.year_of(days) > 0),
            }
        )
        self.starts: Final[Mapping[str, Part]] = MappingProxyType(
            {
                "year": self.first_day_of_year,
                "quarter": lambda days: first_day_of_month(months_of(days) // 3 * 3),
                "month": lambda days: first_day_of_month(months_of(days)),
                "week": lambda days: days - self.iso_weekday(days) + 1,
                "isoyear": self._first_day_of_iso_year,
                "decade": lambda days: self._first_day_of_years(days, 10),
                "century": lambda days: self._first_day_of_years(days, 100),
                "millennium": lambda days: self._first_day_of_years(days, 1000),
            }
        )

    def year_of(self, days: Days) -> Days:
        """The year; 0 is 1 BC."""
        return self._months_of(days) // 12 + 1970

    def first_day_of_year(self, days: Days) -> Days:
        """1 January of the day's year."""
        return self._first_day_of_month(self._months_of(days) // 12 * 12)

    def iso_weekday(self, days: Days) -> Days:
        """Monday 1 to Sunday 7; 1970-01-01 was a Thursday."""
        return (days + 3) % 7 + 1

    def iso_week(self, days: Days) -> Days:
        """Week 1 to 53: the week is of the year that its Thursday is in."""
        thursday = days - self.iso_weekday(days) + 4
        return (thursday - self.first_day_of_year(thursday)) // 7 + 1

    def iso_year(self, days: Days) -> Days:
        """The year that the day's week is of."""
        return self.year_of(days - self.iso_weekday(days) + 4)

    def _year_and_week(self, days: Days) -> Days:
        """The ISO year's number and the week's two digits; below the year 0 the week counts down."""
        years, weeks = self.iso_year(days), self.iso_week(days)
        sign = self._flags(years, years > 0) * 2 - 1
        return years * 100 + weeks * sign

    def _counted_from_one(self, days: Days, length: int) -> Days:
        """Centuries and millennia, of which none is 0: 2000 is of the 20th."""
        years = self.year_of(days)
        positive = self._flags(years, years > 0)
        # (year - 1) / length + 1 where it is positive, else year / length - 1.
        return self._truncated(years - positive, length) + positive * 2 - 1

    def _first_day_of_years(self, days: Days, length: int) -> Days:
        """1 January of the year that is a multiple of `length`, toward zero."""
        years = self._truncated(self.year_of(days), length) * length
        return self._first_day_of_month((years - 1970) * 12)

    def _first_day_of_iso_year(self, days: Days) -> Days:
        """The Monday on which the ISO year begins: that of the week with 4 January."""
        fourth = self._first_day_of_month((self.iso_year(days) - 1970) * 12) + 3
        return fourth - self.iso_weekday(fourth) + 1
