"""Constants of TPC-H's queries: ranges and rules of the specification's "substitution parameters", §2.4.

Each function draws one query's, and says which pieces of our text they replace, and which of the Python of
cudf-polars' `pdsh` as `ast.unparse` writes it. What it replaces are the values that validate answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from random import Random
from types import MappingProxyType
from typing import Final

from bamquery.queries.speed.constants.words import (
    BRANDS,
    COLOURS,
    COMMENT_WORDS,
    CONTAINERS,
    COUNTRY_CODES,
    NATIONS,
    REGIONS,
    SEGMENTS,
    SHIP_MODES,
    TYPES,
)

_YEARS: Final = (1993, 1997)


@dataclass(frozen=True)
class Constants:
    """Pieces of texts and what replaces them; none where a query keeps its own constants.

    Attributes:
        sql: of our SQL.
        python: of the function of `pdsh`.
        scale: the scale factor that `pdsh` is to work with: Q11's fraction depends on it.
    """

    sql: Mapping[str, str] = field(default_factory=dict)
    python: Mapping[str, str] = field(default_factory=dict)
    scale: float = 1.0


def draw_constants(name: str, random: Random, scale: float) -> Constants:
    """Other constants for one of TPC-H's queries, known by the number that its name begins with."""
    return _DRAWS[name[:2]](random, scale)


def _q01(random: Random, scale: float) -> Constants:
    days = random.randint(60, 120)
    last = date(1998, 12, 1) - timedelta(days=days)
    return Constants(
        {"INTERVAL 90 DAY": f"INTERVAL {days} DAY"}, {_python(date(1998, 9, 2)): _python(last)}, scale
    )


def _q02(random: Random, scale: float) -> Constants:
    size, metal, region = random.randint(1, 50), random.choice(TYPES[2]), random.choice(REGIONS)
    return Constants(
        {"p_size = 15": f"p_size = {size}", "'%BRASS'": f"'%{metal}'", "'EUROPE'": f"'{region}'"},
        {"var1 = 15": f"var1 = {size}", "'BRASS'": f"'{metal}'", "'EUROPE'": f"'{region}'"},
        scale,
    )


def _q03(random: Random, scale: float) -> Constants:
    segment = {"'BUILDING'": f"'{random.choice(SEGMENTS)}'"}
    sql, python = _days({date(1995, 3, 15): date(1995, 3, random.randint(1, 31))})
    return Constants(segment | sql, segment | python, scale)


def _q04(random: Random, scale: float) -> Constants:
    return Constants(*_period(date(1993, 7, 1), _month(random, 0, 57), 3), scale)


def _q05(random: Random, scale: float) -> Constants:
    region = {"'ASIA'": f"'{random.choice(REGIONS)}'"}
    sql, python = _year(random)
    return Constants(region | sql, region | python, scale)


def _q06(random: Random, scale: float) -> Constants:
    percent, quantity = random.randint(2, 9), random.randint(24, 25)
    sql, python = _year(random)
    return Constants(
        sql | {"0.06": f"{percent / 100:.2f}", "l_quantity < 24": f"l_quantity < {quantity}"},
        python
        | {
            "var3 = 0.05": f"var3 = {(percent - 1) / 100:.2f}",
            "var4 = 0.07": f"var4 = {(percent + 1) / 100:.2f}",
            "var5 = 24": f"var5 = {quantity}",
        },
        scale,
    )


def _q07(random: Random, scale: float) -> Constants:
    one, other = random.sample(list(NATIONS), 2)
    nations = {"'FRANCE'": f"'{one}'", "'GERMANY'": f"'{other}'"}
    return Constants(nations, nations, scale)


def _q08(random: Random, scale: float) -> Constants:
    nation = random.choice(list(NATIONS))
    kind = " ".join(map(random.choice, TYPES))
    pieces = {
        "'BRAZIL'": f"'{nation}'",
        "'AMERICA'": f"'{NATIONS[nation]}'",
        "'ECONOMY ANODIZED STEEL'": f"'{kind}'",
    }
    return Constants(pieces, pieces, scale)


def _q09(random: Random, scale: float) -> Constants:
    colour = random.choice(COLOURS)
    return Constants({"'%green%'": f"'%{colour}%'"}, {"'green'": f"'{colour}'"}, scale)


def _q10(random: Random, scale: float) -> Constants:
    return Constants(*_period(date(1993, 10, 1), _month(random, 1, 24), 3), scale)


def _q11(random: Random, scale: float) -> Constants:
    nation = {"'GERMANY'": f"'{random.choice(list(NATIONS))}'"}
    fraction = f"{0.0001 / scale:.12f}".rstrip("0")
    return Constants({**nation, "0.0001": fraction}, nation, scale)


def _q12(random: Random, scale: float) -> Constants:
    one, other = random.sample(SHIP_MODES, 2)
    modes = {"'MAIL'": f"'{one}'", "'SHIP'": f"'{other}'"}
    sql, python = _year(random)
    return Constants(modes | sql, modes | python, scale)


def _q13(random: Random, scale: float) -> Constants:
    first, second = map(random.choice, COMMENT_WORDS)
    return Constants(
        {"'%special%requests%'": f"'%{first}%{second}%'"},
        {"'special'": f"'{first}'", "'requests'": f"'{second}'"},
        scale,
    )


def _q14(random: Random, scale: float) -> Constants:
    return Constants(*_period(date(1995, 9, 1), _month(random, 0, 59), 1), scale)


def _q15(random: Random, scale: float) -> Constants:
    return Constants(*_period(date(1996, 1, 1), _month(random, 0, 57), 3), scale)


def _q16(random: Random, scale: float) -> Constants:
    kind = " ".join(map(random.choice, TYPES[:2]))
    sizes = ", ".join(map(str, random.sample(range(1, 51), 8)))
    brand = {"'Brand#45'": f"'{random.choice(BRANDS)}'"}
    before = "49, 14, 23, 45, 19, 3, 36, 9"
    return Constants(
        {**brand, "'MEDIUM POLISHED%'": f"'{kind}%'", f"({before})": f"({sizes})"},
        {**brand, "'MEDIUM POLISHED*'": f"'{kind}*'", f"[{before}]": f"[{sizes}]"},
        scale,
    )


def _q17(random: Random, scale: float) -> Constants:
    container = " ".join(map(random.choice, CONTAINERS))
    pieces = {"'Brand#23'": f"'{random.choice(BRANDS)}'", "'MED BOX'": f"'{container}'"}
    return Constants(pieces, pieces, scale)


def _q18(random: Random, scale: float) -> Constants:
    quantity = random.randint(312, 315)
    return Constants({"> 300": f"> {quantity}"}, {"var1 = 300": f"var1 = {quantity}"}, scale)


def _q19(random: Random, scale: float) -> Constants:
    sql, python = {}, {}
    for brand, least in (("Brand#12", 1), ("Brand#23", 10), ("Brand#34", 20)):
        chosen = random.randint(least, 10 if least == 1 else least + 10)
        sql[_least_to_most(least)] = _least_to_most(chosen)
        python[f"is_between({least}, {least + 10})"] = f"is_between({chosen}, {chosen + 10})"
        sql[f"'{brand}'"] = python[f"'{brand}'"] = f"'{random.choice(BRANDS)}'"
    return Constants(sql, python, scale)


def _q20(random: Random, scale: float) -> Constants:
    colour = random.choice(COLOURS)
    nation = {"'CANADA'": f"'{random.choice(list(NATIONS))}'"}
    sql, python = _year(random)
    return Constants(
        {**nation, **sql, "'forest%'": f"'{colour}%'"}, {**nation, **python, "'forest'": f"'{colour}'"}, scale
    )


def _q21(random: Random, scale: float) -> Constants:
    nation = {"'SAUDI ARABIA'": f"'{random.choice(list(NATIONS))}'"}
    return Constants(nation, nation, scale)


def _q22(random: Random, scale: float) -> Constants:
    codes = random.sample(COUNTRY_CODES, 7)
    before = ("13", "31", "23", "29", "30", "18", "17")
    return Constants({_quoted(before): _quoted(codes)}, {"|".join(before): "|".join(codes)}, scale)


_DRAWS: Final[Mapping[str, Callable[[Random, float], Constants]]] = MappingProxyType(
    {
        draw.__name__[2:]: draw
        for draw in (
            *(_q01, _q02, _q03, _q04, _q05, _q06, _q07, _q08, _q09, _q10, _q11),
            *(_q12, _q13, _q14, _q15, _q16, _q17, _q18, _q19, _q20, _q21, _q22),
        )
    }
)


def _month(random: Random, first: int, last: int) -> date:
    """The first day of a month, of which January 1993 is number 0."""
    number = random.randint(first, last)
    return date(1993 + number // 12, number % 12 + 1, 1)


def _period(begin: date, drawn: date, months: int) -> tuple[dict[str, str], dict[str, str]]:
    """Of a text that adds the months itself, and of a function that has both ends."""
    ends = {begin: drawn, _later(begin, months): _later(drawn, months)}
    return _days({begin: drawn})[0], _days(ends)[1]


def _year(random: Random) -> tuple[dict[str, str], dict[str, str]]:
    return _period(date(1994, 1, 1), date(random.randint(*_YEARS), 1, 1), 12)


def _days(days: Mapping[date, date]) -> tuple[dict[str, str], dict[str, str]]:
    sql = {f"'{before}'": f"'{after}'" for before, after in days.items()}
    return sql, {_python(before): _python(after) for before, after in days.items()}


def _later(day: date, months: int) -> date:
    number = 12 * day.year + day.month - 1 + months
    return date(number // 12, number % 12 + 1, 1)


def _python(day: date) -> str:
    return f"date({day.year}, {day.month}, {day.day})"


def _least_to_most(least: int) -> str:
    return f"l_quantity >= {least} AND l_quantity <= {least} + 10"


def _quoted(codes: Sequence[str]) -> str:
    return str(tuple(codes))
