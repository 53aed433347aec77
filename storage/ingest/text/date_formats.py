"""The formats of dates, times and timestamps that are looked for in texts, and columns of text read by them.

Which formats there are, and which is tried first, is DuckDB's: years first, then days, then months.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.text.time_zones import instants

Array: TypeAlias = "pa.Array[Any]"
"""Short for annotations."""

Kind: TypeAlias = Literal["time", "date", "timestamp", "timestamptz"]

TYPES: Final[dict[Kind, DataType]] = {
    "time": pa.time64("us"),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
_SEPARATORS: Final = ("-", "/", ".", " ")
_WIDTHS: Final = {"Y": 4, "y": 2, "m": 2, "d": 2, "H": 2, "I": 2, "M": 2, "S": 2, "f": 6}
"""Letters of numbers, and of how many digits they are at most."""
_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_OFFSET: Final = r"(?P<offset>[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?)"
_WORDS: Final = {
    "p": r"(?P<p>[AaPp])[Mm]",
    "z": _OFFSET,
    "b": rf"(?P<b>(?i:{'|'.join(name[:3] for name in _MONTHS)}))",
    "B": rf"(?P<b>(?i:{'|'.join(_MONTHS)}))",
    "a": rf"(?i:{'|'.join(name[:3] for name in _WEEKDAYS)})",
    "A": rf"(?i:{'|'.join(_WEEKDAYS)})",
    "%": "%",
}
_TOKEN: Final = re.compile(r"%-?(?P<letter>.?)|\s+|[^%\s]+", re.DOTALL)
_SHORT_YEARS_BEGIN: Final = 69
"""The two-digit year that is 1969; those below it are of this century, as in strptime."""
_YEAR_UNSAID: Final = 1900
_DAY, _HOUR, _MINUTE, _SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
_CLOCK: Final = r"(?P<H>\d{1,2}):(?P<M>\d{1,2})(?::(?P<S>\d{1,2})(?:\.(?P<f>\d{0,6})0*)?)?"
_LONG_CLOCK: Final = r"(?P<H>\d{1,2}):(?P<M>\d{1,2}):(?P<S>\d{1,2})(?:\.(?P<f>\d{1,6})0*)?"
_ZONE: Final = rf"(?:Z|{_OFFSET}|\s+(?P<zone>[A-Za-z][A-Za-z0-9_/+:-]*))?"


@dataclass(frozen=True, slots=True)
class DateFormat:
    """One way in which dates, times or timestamps are written."""

    name: str
    """As strptime has it, but for those of ISO 8601."""
    kind: Kind
    shape: str
    """A regular expression of RE2; its groups are named by the letters of strptime."""

    @property
    def type(self) -> DataType:
        """What a column of such texts becomes."""
        return TYPES[self.kind]

    def fits(self, text: str) -> bool:
        """Whether one text may be of this format: a look at its characters only."""
        return re.match(self.shape, text) is not None

    def read(self, texts: Array) -> Array | None:
        """The column as `type`, None if some text is not of this format (30 February is not)."""
        parts = pc.extract_regex(texts, self.shape)
        if parts.null_count != texts.null_count:
            return None
        groups = _Groups(parts)
        if not groups.rows:
            nothing: Array = pa.nulls(len(texts)).cast(self.type)
            return nothing
        clock = _clock(groups, has_end=self.kind != "time")
        if clock is None:
            return None
        if self.kind == "time":
            return groups.column(clock, self.type)
        days = _days(groups)
        if days is None:
            return None
        if self.kind == "date":
            return groups.column(days.astype(np.int32), self.type)
        stamps = groups.column(days * _DAY + clock, pa.timestamp("us"))
        in_utc = _in_utc(stamps, groups)
        return None if in_utc is None else in_utc.cast(self.type)


class _Groups:
    """What a regular expression found in a column, each group as numbers of the rows that are not null."""

    def __init__(self, parts: Any) -> None:
        self._valid = parts.is_valid()
        self._has_nulls = bool(parts.null_count)
        self._parts = parts.drop_null() if self._has_nulls else parts
        self.names = {field.name for field in parts.type}
        self.rows = len(self._parts)

    def text(self, name: str) -> Array:
        """Empty where there was none of it."""
        group: Array = pc.struct_field(self._parts, name)
        return group

    def number(self, name: str, *, missing: int = 0) -> NDArray[np.int64]:
        """Zero where it is empty, and `missing` where the format has none of it."""
        if name not in self.names:
            return np.full(self.rows, missing, np.int64)
        text = self.text(name)
        empty = pc.equal(text, pa.scalar("", text.type))
        if pc.any(empty).as_py():
            text = pc.if_else(empty, pa.scalar("0", text.type), text)
        numbers: NDArray[np.int64] = text.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return numbers

    def column(self, numbers: NDArray[Any], kind: DataType) -> Array:
        """Numbers of the rows, with nulls again where there were some."""
        values: Array = pa.array(numbers).view(kind)
        return self.scatter_nulls(values)

    def scatter_nulls(self, values: Array) -> Array:
        """Values of the rows, with nulls again where there were some."""
        if not self._has_nulls:
            return values
        places = pc.subtract(pc.cumulative_sum(self._valid.cast(pa.int32())), 1)
        return pc.take(values, pc.if_else(self._valid, places, None))


def _days(groups: _Groups) -> NDArray[np.int64] | None:
    """Days since 1970, None if some are of no calendar."""
    years = groups.number("Y", missing=_YEAR_UNSAID)
    if "y" in groups.names:
        short = groups.number("y")
        years = short + np.where(short < _SHORT_YEARS_BEGIN, 2000, 1900)
    months, days = groups.number("m", missing=1), groups.number("d", missing=1)
    if "b" in groups.names:
        short_names = pc.utf8_slice_codeunits(pc.utf8_lower(groups.text("b")), 0, 3)
        known = pa.array([name[:3].lower() for name in _MONTHS], short_names.type)
        months = pc.index_in(short_names, known).to_numpy(zero_copy_only=False).astype(np.int64) + 1
    if months.min() < 1 or months.max() > 12 or days.min() < 1 or years.min() < 1:
        return None
    starts = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    dates = starts.astype("datetime64[D]") + (days - 1)
    if np.any(dates.astype("datetime64[M]") != starts):
        return None
    numbers: NDArray[np.int64] = dates.astype(np.int64)
    return numbers


def _clock(groups: _Groups, *, has_end: bool) -> NDArray[np.int64] | None:
    """Microseconds of the day, None if some are of no clock; 24:00 only where `has_end`."""
    hours, minutes, seconds = groups.number("H"), groups.number("M"), groups.number("S")
    if "I" in groups.names:
        halves = groups.number("I")
        if halves.min() < 1 or halves.max() > 12:
            return None
        afternoon = np.asarray(pc.starts_with(groups.text("p"), "P", ignore_case=True))
        hours = halves % 12 + np.where(afternoon, 12, 0)
    if minutes.max() > 59 or seconds.max() > 59:
        return None
    clock = hours * _HOUR + minutes * _MINUTE + seconds * _SECOND
    if "f" in groups.names:
        clock += pc.utf8_rpad(groups.text("f"), 6, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)
    return clock if clock.max() < _DAY + has_end else None


def _in_utc(stamps: Array, groups: _Groups) -> Array | None:
    """Local timestamps as instants, by each one's offset or zone; without both, it is UTC."""
    offsets = groups.text("offset") if "offset" in groups.names else None
    if offsets is not None and pc.any(pc.match_substring_regex(offsets, ".")).as_py():
        seconds: NDArray[np.int64] = np.zeros(groups.rows, np.int64)
        digits = pc.utf8_rpad(pc.replace_substring(offsets, ":", ""), 7, "0")
        # Of texts without an offset these are zeros.
        for start, unit in ((1, 3600), (3, 60), (5, 1)):
            part = pc.utf8_slice_codeunits(digits, start, start + 2).cast(pa.int64())
            seconds += part.to_numpy(zero_copy_only=False) * unit
        west = np.asarray(pc.starts_with(offsets, "-"))
        shifts = groups.column(np.where(west, seconds, -seconds) * _SECOND, pa.duration("us"))
        stamps = pc.add(stamps, shifts)
    if "zone" not in groups.names:
        return stamps
    zones = groups.text("zone")
    spread = groups.scatter_nulls(zones)
    for zone in pc.unique(zones).to_pylist():
        if zone:
            moved = instants(stamps, zone)
            if moved is None:
                return None
            stamps = pc.if_else(pc.equal(spread, zone), moved, stamps)
    return stamps


def format_of(pattern: str, kind: Kind) -> DateFormat:
    """A format as strptime writes it.

    Raises:
        ValueError: it has a letter that is not understood, or one that comes twice.
    """
    tokens = list(_TOKEN.finditer(pattern))
    shape = ""
    letters: set[str] = set()
    for token, following in zip(tokens, [*tokens[1:], None], strict=False):
        letter = token["letter"]
        if letter is None:
            shape += r"\s+" if token[0].isspace() else re.escape(token[0])
            continue
        if letter in letters and letter != "%":
            raise ValueError(f"%{letter} comes twice")
        letters.add(letter)
        if letter in _WIDTHS:
            # As strptime does: what numbers follow takes as many digits as it can.
            is_fixed = letter in {"Y", "y"} or (following and following["letter"] in _WIDTHS)
            most = _WIDTHS[letter]
            shape += rf"(?P<{letter}>\d{{{most if is_fixed else f'1,{most}'}}})"
        elif letter in _WORDS:
            shape += _WORDS[letter]
        else:
            known = ", ".join(f"%{letter}" for letter in (*_WIDTHS, *_WORDS))
            raise ValueError(f"{token[0]} is not understood: there are {known}")
    if not letters - {"%"}:
        raise ValueError("it has no part of a date, such as %Y")
    for one, other in (("p", "I"), ("I", "p")):
        if one in letters and other not in letters:
            raise ValueError(f"%{one} is nothing without %{other}")
    for one, other in (("y", "Y"), ("m", "b"), ("m", "B"), ("b", "B"), ("H", "I")):
        if {one, other} <= letters:
            raise ValueError(f"%{one} and %{other} say the same")
    return DateFormat(pattern, kind, rf"^\s*{shape}\s*$")


def _dates(separator: str) -> tuple[DateFormat, ...]:
    patterns = ["%y-%m-%d", "%Y-%m-%d", "%d-%m-%y", "%d-%m-%Y", "%m-%d-%y", "%m-%d-%Y"]
    return tuple(format_of(pattern.replace("-", separator), "date") for pattern in patterns)


def _stamps(separator: str) -> tuple[DateFormat, ...]:
    patterns = [
        "%y-%m-%d %H:%M:%S",
        "%Y-%m-%d %H:%M:%S",
        "%d-%m-%y %H:%M:%S",
        "%d-%m-%Y %H:%M:%S",
        "%m-%d-%y %I:%M:%S %p",
        "%m-%d-%Y %I:%M:%S %p",
        "%Y-%m-%d %H:%M:%S.%f",
    ]
    return tuple(format_of(pattern.replace("-", separator), "timestamp") for pattern in patterns)


def _iso(kind: Kind, behind: str) -> tuple[DateFormat, ...]:
    """ISO 8601 as people write it: digits may lack zeros, and there may be slashes."""
    shape = rf"(?P<Y>\d{{4}})-(?P<m>\d{{1,2}})-(?P<d>\d{{1,2}}){behind}"
    return (
        DateFormat(f"{kind} of ISO 8601", kind, rf"^\s*{shape}\s*$"),
        DateFormat(f"{kind} of ISO 8601 with slashes", kind, rf"^\s*{shape.replace('-', '/', 2)}\s*$"),
    )


TIME: Final = DateFormat("%H:%M:%S", "time", rf"^\s*{_CLOCK}\s*$")
DATES: Final = tuple(format_ for separator in _SEPARATORS for format_ in _dates(separator))
ISO_DATE: Final = DATES[1]
ISO_STAMPS: Final = _iso("timestamp", rf"(?:(?:T|\s+){_CLOCK}(?:\s+(?i:UTC))?)?")
STAMPS: Final = tuple(format_ for separator in _SEPARATORS for format_ in _stamps(separator))
ISO_INSTANTS: Final = _iso("timestamptz", rf"(?:(?:T|\s+){_CLOCK}{_ZONE})?")

JSON_STAMP: Final = _iso("timestamp", rf"[T ]{_LONG_CLOCK}")[0]
JSON_INSTANT: Final = _iso("timestamptz", rf"[T ]{_CLOCK}(?:Z|{_OFFSET})")[0]
JSON_FORMATS: Final = (TIME, *_dates("-"), JSON_INSTANT, JSON_STAMP, *_stamps("-"))
"""What texts of JSON may be, in order: there, separators are dashes, and times are not left out."""
