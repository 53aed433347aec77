"""Texts that casts read, or nearly so: valid ones, their spellings, and changes of one or two characters."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

NUMBERS: Final = (
    "0", "-0", "+0", "1", "-1", "+1", "00012", "127", "128", "-128", "-129", "255", "256", "32767", "32768",
    "-32768", "65535", "65536", "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295",
    "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "18446744073709551615", "18446744073709551616",
    "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "999.9", "999.94",
    "999.95", "999.96", "-999.95", "0.5", "-0.5", "1.5", "2.5", "-2.5", "0.49999999999999999999", "127.4",
    "127.5", "-128.5", "255.5", "0.05", "0.0005", "0.0004999", ".5", "5.", "-.5", "1e2", "1E2", "1e+2",
    "1e-2", "15e-1", "25e-1", "1e0", "1.5e1", "12e-1", "1e18", "1e19", "1e37", "1e38", "1e39", "1.27e2",
    "1.28e2", "-1.28e2", "2.5e38", "1.7e39", "1e308", "1.8e308", "1e309", "-1e309", "1e-45", "1e-46",
    "5e-324", "2e-324", "1e-400", "3.4028235e38", "3.4028236e38", "1e-100000", "1e100000", "1e-9999999999",
    "1e9999999999", "0.1", "-0.0", "0.000000000000000000000000000000000000001",
    "123456789012345678901234567890.123456789", "0x0", "0xF", "0xff", "0xFF", "0X1f", "0x80", "0x7F",
    "0x8000", "0x80000000", "0x8000000000000000", "0xFFFFFFFFFFFFFFFF", "0x1_0", "0b1", "0b101", "0B11",
    "0b1_0", "0b10000000", "-0x1", "0x", "0b", "0xg", "0b2", "1_000", "1_0.5_0", "1_2e1_0", "1__0", "_1",
    "1_", "1_.5", "1._5", "1e1_0", "nan", "NaN", "-nan", "NAN", "inf", "-inf", "+inf", "infinity",
    "-Infinity", "INF", "Infinit", "1e", "1e+", "e1", ".", "-", "+", "+-1", "--1", "1-", "1.2.3", "1,5",
    "1 2", "abc", "1a", "true1",
)  # fmt: skip
BOOLEANS: Final = (
    "true", "false", "TRUE", "False", "t", "f", "T", "F", "yes", "no", "YES", "No", "y", "n", "Y", "on",
    "off", "2", "tru",
)  # fmt: skip
DATES: Final = (
    "1970-01-01", "2020-02-29", "2021-02-29", "1900-02-29", "2000-02-29", "2020-2-9", "2020-12-31",
    "2020-13-01", "2020-00-01", "2020-01-00", "2020-04-31", "0001-01-01", "0000-01-01", "-0001-01-01",
    "1-1-1", "01-01-01", "99-01-01", "9999-12-31", "10000-01-01", "5881580-07-10", "5881580-07-11",
    "5877642-06-25 (BC)", "5877642-06-24 (BC)", "-5877641-06-25", "0001-01-01 (BC)", "0000-01-01 (BC)",
    "-0030-01-01 (BC)", "1111-11-11 (bc)", "1111-11-11(BC)", "1111-11-11  (BC)", "1111-11-11 (BC",
    "2020/01/02", "2020 01 02", "2020\\01\\02", "2020-01/02", "12/17/23", "20200102", "2020-01", "2020",
    "+2020-01-01", "2020.01.02", "epoch", "EPOCH", "infinite", "2020-01-02abc", "2020-001-02",
    "2020-01-022", "02020-01-01", "290309-12-22 (BC)", "294247-01-10", "1677-09-22", "2262-04-11",
)  # fmt: skip
TIMES: Final = (
    "00:00:00", "23:59:59", "24:00:00", "24:00:01", "24:00", "23:59:60", "23:60:00", "25:00:00", "1:2:3",
    "01:02", "1:2", "11:", "11:11:", "00:00:", "1:", "12:34:56.", "12:34:56.7", "12:34:56.123456",
    "12:34:56.1234565", "12:34:56.1234564", "12:34:56.123456789", "12:34:56.1234567895",
    "12:34:56.999999999", "23:59:59.999999", "23:59:59.9999995", "23:59:59.9999999999", "12:34:56,5",
    "12:34:56+01", "12:34:56-01:30", "12:34:56Z", "12:34:56 Z", "12.34", "123456", "12:34:56 AM",
    "12:34:56 PM", "-01:00:00", "+01:00:00", "001:02:03", "01:002:03", "01:02:003", "12:", ":12", "12:34:5",
)  # fmt: skip
ZONES: Final = (
    "Z", "z", " Z", " z", "UTC", " UTC", " utc", " uTc", " GMT", " EST", " PST8PDT", " Asia/Tokyo",
    " asia/tokyo", " Europe/Berlin", " America/New_York", " Nowhere/City", "+01", "-01", " +01", "+1",
    "+01:30", "-01:30", "+0130", "+01:", "+01:30:15", "+15", "+15:59", "+16", "-15:59", "+24", "+99",
    "+100", "+00", "-00", " UTC+5", "UTC+5", " GMT+5", "+01 UTC", "  UTC", " UTC ", "T", " (BC)", "+", "-",
)  # fmt: skip
MOMENTS: Final = (
    "2020-01-02 03:04:05", "2020-01-02T03:04:05", "2020-01-02t03:04:05", "2020-01-02  03:04:05",
    "2020-01-02 3:4:5", "2020-01-02 03:04", "2020-01-02 03", "2020-01-02 ", "2020-01-02 11:",
    "2020-01-02 24:00:00", "2020-01-02 24:00:01", "2020-01-02 03:04:05.5", "2020-01-02 03:04:05.123456",
    "2020-01-02 03:04:05.1234567", "2020-01-02 03:04:05.1239999", "2020-01-02 03:04:05.123456789",
    "2020-01-02 03:04:05.9999999999", "2020-01-02 23:59:59.9999995", "0044-03-15 (BC) 03:04:05",
    "1969-12-31 23:59:59.5", "1969-12-31 23:59:59.4995", "1969-12-31 23:59:59.999999",
    "290309-12-22 (BC) 00:00:00", "290309-12-21 (BC) 23:59:59", "290309-12-21 (BC) 19:59:05.224193",
    "294247-01-10 04:00:54.775806", "294247-01-10 04:00:54.775807", "294247-01-10 04:00:54",
    "294247-01-10 04:00:55", "1677-09-21 00:12:43.145224", "1677-09-21 00:12:43.145224194",
    "1677-09-21 00:12:43.145224193", "1677-09-21 00:12:44", "2262-04-11 23:47:16.854775806",
    "2262-04-11 23:47:16.854775807", "2262-04-11 23:47:17", "9999-12-31 23:59:59.999999",
    "0001-01-01 00:00:00", "2020-01-02 03:04:05 6", "2020-01-02 03:04:05abc", "epoch 1",
)  # fmt: skip
INTERVALS: Final = (
    "1 day", "1 days", "-1 day", "+1 day", "1day", "1d", "1 DAY", "1 month 2 days 03:04:05", "1 year",
    "1.5 years", "1.5 months", "1.5 days", "0.1 month", "1.1 seconds", "1.0000005 seconds", "1 week",
    "1 quarter", "1 decade", "1 century", "1 millennium", "00:00:01", "-00:00:01", "+00:00:01", "00:00:",
    "1:", "1:2", "100:00:00", "00:60:00", "00:00:60", "00:00:00.1234567", "1 day ago", "1 day 00:00:01 ago",
    "@ 1 day", "1 fortnight", "day", "1", "1.5", "1 day 1", "P1D", "1 day, 1 hour", "2147483647 months",
    "2147483648 months", "-2147483648 months", "2147483647 days", "2147483648 days",
    "9223372036854775 milliseconds", "9223372036854 seconds", "292 years", "2562047:47:16.854",
    "-2562047:47:16.854", "1 microsecond", "1 us", "1 ms", "1 nanosecond", "1e2 days", "1 minute -1 second",
    "1 mon", "1 m", "1 h", "1 y",
)  # fmt: skip
OTHERS: Final = (
    "", " ", "a", "ab", "abc", "ABC", "äöü", "日本", "😀", "a\tb", "a\nb", "it's", "\\x41", "\\xZZ", "\\x4",
    "\\x", "\\\\", "%", "_", "NULL", "null", "\u00a01", "\u0661", "１", "1\u00a0", "\x0b1\x0c", "x" * 300,
    "\ufeff1", "a\0b", "1\0",
)  # fmt: skip

FAMILIES: Final[tuple[tuple[str, Sequence[str]], ...]] = (
    ("number", NUMBERS),
    ("boolean", BOOLEANS),
    ("date", DATES),
    ("time", TIMES),
    ("moment", MOMENTS),
    ("interval", INTERVALS),
    ("other", OTHERS),
)

_BLANKS: Final = (
    (" ", ""), ("", " "), ("\t", ""), ("", "\t"), ("\n", ""), ("", "\n"), ("\v", "\f"), ("", "\r"),
)  # fmt: skip

EXTREMES: Final = tuple(
    (text, f"text of a {name}") for name, found in FAMILIES for text in found
) + tuple((f"2020-01-02 03:04:05{zone}", "text of a moment with a zone") for zone in ZONES) + tuple(
    (f"{blank[0]}{text}{blank[1]}", f"text of a {name} in blanks")
    for name, found in FAMILIES[:-1]
    for text in found[:1]
    for blank in _BLANKS
)  # fmt: skip
"""Every text of the lists above and what is special about it."""

_ALPHABET: Final = "0123456789+-.:eE_/ \t()xXbBCZTnfaiuk"


def draw_string(choose: random.Random) -> str:
    """A text of some type, most often changed in a place or two."""
    text = _DRAWN[choose.randrange(len(_DRAWN))](choose)
    for _ in range(choose.choice((0, 0, 1, 1, 2))):
        text = _change_string(choose, text)
    return text


def _change_string(choose: random.Random, text: str) -> str:
    place = choose.randrange(len(text) + 1)
    character = choose.choice(_ALPHABET)
    match choose.randrange(5):
        case 0:
            return text[:place] + character + text[place:]
        case 1:
            return text[:place] + text[place + 1 :]
        case 2:
            return text[:place] + character + text[place + 1 :]
        case 3:
            return text[:place] + text[max(place - 1, 0) :]  # a character twice
        case _:
            return choose.choice((" ", "+", "-", "0")) + text


def _number(choose: random.Random) -> str:
    whole = str(choose.getrandbits(choose.randrange(1, 130)))
    sign = choose.choice(("", "", "", "-", "+"))
    fraction = f".{choose.getrandbits(choose.randrange(1, 60))}" if choose.random() < 0.5 else ""
    exponent = f"e{choose.randrange(-45, 45)}" if choose.random() < 0.3 else ""
    return sign + whole[: choose.randrange(1, len(whole) + 1)] + fraction + exponent


def _radix(choose: random.Random) -> str:
    number = choose.getrandbits(choose.randrange(1, 70))
    return choose.choice((hex, bin))(number)


def _date(choose: random.Random) -> str:
    far = choose.choice((10, 3000, 3000, 300_000))
    year = choose.randrange(-far if choose.random() < 0.1 else 1, far)
    by = choose.choice(("-", "-", "-", "/", " "))
    pad = choose.choice((1, 2, 2, 2))
    month, day = f"{choose.randrange(1, 13):0{pad}d}", f"{choose.randrange(1, 32):0{pad}d}"
    text = f"{year:0{choose.choice((1, 4))}d}{by}{month}{by}{day}"
    return text + " (BC)" if choose.random() < 0.1 else text


def _time(choose: random.Random) -> str:
    text = f"{choose.randrange(25):02d}:{choose.randrange(60):02d}"
    if choose.random() < 0.8:
        text += f":{choose.randrange(60):02d}"
        if choose.random() < 0.5:
            text += "." + "".join(choose.choices("0123456789", k=choose.randrange(11)))
    return text


def _moment(choose: random.Random) -> str:
    zone = choose.choice(ZONES) if choose.random() < 0.4 else ""
    return _date(choose) + choose.choice((" ", "T")) + _time(choose) + zone


def _interval(choose: random.Random) -> str:
    units = ("year", "month", "days", "hours", "minute", "seconds", "ms", "us", "week", "quarter", "decade")
    parts = [
        f"{choose.choice(('', '-'))}{choose.getrandbits(choose.randrange(1, 34))}"
        f"{choose.choice(('', '', '.5', '.123456789'))} {choose.choice(units)}"
        for _ in range(choose.randrange(1, 4))
    ]
    return " ".join(parts + ([_time(choose)] if choose.random() < 0.3 else []))


def _listed(choose: random.Random) -> str:
    return choose.choice(EXTREMES)[0]


_DRAWN: Final[tuple[Callable[[random.Random], str], ...]] = (
    _listed, _number, _number, _radix, _date, _time, _moment, _moment, _interval,
)  # fmt: skip
