"""The text of kernels that compute a program and gather its aggregates, row by row.

Of few groups each thread has cells of its own in its block's memory, which nobody else adds to; of more a
block has; of many there are only those of the groups. Threads and blocks add up theirs at their end.
"""

from __future__ import annotations

from collections.abc import Sequence

from bamquery.engine.cuda.pipeline.cell_layout import CellLayout, CellPlace
from bamquery.engine.cuda.pipeline.program_text import HEADER, ProgramKernel, ProgramText
from bamquery.engine.pipeline.instructions import AggregateKind, Program

_DOUBLES = (AggregateKind.LEAST_DOUBLE, AggregateKind.GREATEST_DOUBLE)
_LEAST = (AggregateKind.LEAST, AggregateKind.LEAST_DOUBLE)
_FIRST = {AggregateKind.LEAST: "0x7fffffffffffffffll", AggregateKind.GREATEST: "(-0x7fffffffffffffffll - 1)"}


class OwnCells:
    """Cells of one thread: as the layout's words, but that a sum of whole numbers is one.

    Attributes:
        count: how many.
        of_word: the cell of each word of the layout that has one.
    """

    def __init__(self, layout: CellLayout) -> None:
        second = {p.value + 1 for p in layout.places if p.step.kind is AggregateKind.SUM}
        words = [word for word in range(len(layout.kinds)) if word not in second]
        self.of_word = {word: cell for cell, word in enumerate(words)}
        self.count = len(words)


def aggregate_text(
    program: Program, nullable: Sequence[bool], *, own: bool
) -> tuple[ProgramKernel, CellLayout]:
    """A kernel that adds rows to their groups' cells; `own`: by way of each thread's own.

    `nullable`: of each input, whether it has nulls.
    """
    text = ProgramText(program, nullable)
    nulls = [one.argument is not None and text.may_be_null(one.argument) for one in program.aggregates]
    layout = CellLayout(program.aggregates, nulls)
    body = _own_body(text, layout) if own else _shared_body(text, layout)
    made = (
        f'#include "{HEADER}"\n\nnamespace bamquery {{\n\n{text.structures()}\n'
        f'extern "C" __global__ void __launch_bounds__({128 if own else 256})\n'
        "    program(Inputs inputs, Constants constants, const int* codes, Word rows, unsigned groups,\n"
        f"            Cells cells, {'' if own else 'bool in_block, '}unsigned* status) {{\n"
        "  extern __shared__ Word block_words[];\n"
        "  bool lost = false;\n"
        f"{body}"
        "  if (lost) *status = 1;\n"
        "}\n\n}  // namespace bamquery\n"
    )
    return ProgramKernel(made, tuple(text.constants), ()), layout


def _rows(text: ProgramText, adds: Sequence[str]) -> str:
    """The loop over rows."""
    body = "".join(f"    {line}\n" for line in (*text.lines, *adds))
    return (
        "  const Word step = static_cast<Word>(gridDim.x) * blockDim.x;\n"
        "  const Word start = static_cast<Word>(blockIdx.x) * blockDim.x + threadIdx.x;\n"
        "  for (Word at = start; at < rows; at += step) {\n"
        "    const Word group = codes == nullptr ? 0 : codes[at];\n"
        f"{body}"
        "  }\n"
    )


def _condition(argument: int | None, flag: int | None) -> str:
    tests = [] if argument is None else [f"r{argument}.valid"]
    tests += [] if flag is None else [f"r{flag}.is"]
    return " && ".join(tests) or "true"


def _adding(layout: CellLayout, count: str, add: dict[AggregateKind, str]) -> list[str]:
    """Lines that add a row: those of counts, and those of values where a row counts."""
    lines = [count.format(word=0)]
    by_count: dict[int, list[str]] = {0: []}
    for word in layout.conditions:
        by_count[word] = [count.format(word=word)]
    done = set()
    for place in layout.places:
        kind = place.step.kind
        if kind is AggregateKind.COUNT or place.value in done:
            continue
        done.add(place.value)
        register = f"r{place.step.argument}.word"
        value = f"ordered_word({register})" if kind in _DOUBLES else register
        by_count[place.count].append(add[kind].format(word=place.value, next=place.value + 1, value=value))
    lines += by_count.pop(0)
    for word, some in by_count.items():
        lines.append(f"if ({_condition(*layout.conditions[word])}) {{")
        lines += [f"  {line}" for line in some]
        lines.append("}")
    return lines


def _by_kind(whole: str, double: str, least: str, greatest: str) -> dict[AggregateKind, str]:
    return {
        AggregateKind.SUM: whole,
        AggregateKind.SUM_DOUBLES: double,
        AggregateKind.LEAST: least,
        AggregateKind.LEAST_DOUBLE: least,
        AggregateKind.GREATEST: greatest,
        AggregateKind.GREATEST_DOUBLE: greatest,
    }


def _shared_body(text: ProgramText, layout: CellLayout) -> str:
    words = len(layout.kinds)
    cell = "to.at({word}, group)"
    adds = _adding(
        layout,
        f"Shared::count({cell});",
        _by_kind(
            f"Shared::sum({cell}, to.of_word, {{value}});",
            f"Shared::sum_double({cell}, {{value}});",
            f"Shared::least({cell}, {{value}});",
            f"Shared::greatest({cell}, {{value}});",
        ),
    )
    firsts = "".join(
        f"    if (i % {words} == {word}) first = {value};\n" for word, value in _first_words(layout)
    )
    settles = "".join(
        f"      case {place.value}:\n        {line}\n        break;\n" for place, line in _settled(layout)
    )
    return (
        f"  const Cells to = in_block ? Cells{{block_words, 1, {words}}} : cells;\n"
        f"  const Word mine = in_block ? static_cast<Word>(groups) * {words} : 0;\n"
        "  for (Word i = threadIdx.x; i < mine; i += blockDim.x) {\n"
        f"    Word first = 0;\n{firsts}"
        "    block_words[i] = first;\n"
        "  }\n"
        "  __syncthreads();\n"
        f"{_rows(text, adds)}"
        "  __syncthreads();\n"
        "  for (Word i = threadIdx.x; i < mine; i += blockDim.x) {\n"
        f"    Word* const cell = cells.at(i % {words}, i / {words});\n"
        f"    switch (i % {words}) {{\n{settles}"
        "      default:\n        add_word(cell, block_words[i]);\n    }\n"
        "  }\n"
    )


def _settled(layout: CellLayout) -> list[tuple[CellPlace, str]]:
    """Words that are not added up as whole numbers are, and how a block's come to the groups'."""
    lines = _by_kind(
        "",
        "Shared::sum_double(cell, block_words[i]);",
        "Shared::least(cell, block_words[i]);",
        "Shared::greatest(cell, block_words[i]);",
    )
    places = {place.value: place for place in layout.places if lines.get(place.step.kind)}
    return [(place, lines[place.step.kind]) for place in places.values()]


def _first_words(layout: CellLayout) -> list[tuple[int, str]]:
    """Words that do not begin as 0."""
    found = {}
    for place in layout.places:
        if place.step.kind in (*_FIRST, *_DOUBLES):
            kind = AggregateKind.LEAST if place.step.kind in _LEAST else AggregateKind.GREATEST
            found[place.value] = _FIRST[kind]
    return list(found.items())


def _own_body(text: ProgramText, layout: CellLayout) -> str:
    own = OwnCells(layout)
    cells = {word: f"own[{cell} * blockDim.x]" for word, cell in own.of_word.items()}

    lines = _adding(
        layout,
        "Own::count(&@{word}@);",
        _by_kind(
            "Own::sum(&@{word}@, {value}, cells.at({word}, group), cells.at({next}, group));",
            "Own::sum_double(&@{word}@, {value});",
            "Own::least(&@{word}@, {value});",
            "Own::greatest(&@{word}@, {value});",
        ),
    )
    for word, cell in cells.items():
        lines = [line.replace(f"@{word}@", cell) for line in lines]
    adds = [f"Word* const own = block_words + group * {own.count} * blockDim.x + threadIdx.x;", *lines]
    firsts = "".join(
        f"    if (i % {own.count} == {own.of_word[word]}) first = {value};\n"
        for word, value in _first_words(layout)
    )
    settles = "".join(
        f"      case {own.of_word[place.value]}:\n        {line}\n        break;\n"
        for place, line in _own_settled(layout)
    )
    counts = "".join(
        f"      case {own.of_word[word]}:\n"
        f"        settle_count(mine, blockDim.x, lane, cells.at({word}, i / {own.count}));\n        break;\n"
        for word in (0, *layout.conditions)
    )
    return (
        f"  const unsigned all = groups * {own.count};\n"
        "  for (unsigned i = 0; i < all; ++i) {\n"
        f"    Word first = 0;\n{firsts}"
        "    block_words[i * blockDim.x + threadIdx.x] = first;\n"
        "  }\n"
        f"{_rows(text, adds)}"
        "  __syncthreads();\n"
        "  const unsigned lane = threadIdx.x % 32;\n"
        "  for (unsigned i = threadIdx.x / 32; i < all; i += blockDim.x / 32) {\n"
        "    const Word* const mine = block_words + i * blockDim.x;\n"
        f"    switch (i % {own.count}) {{\n{counts}{settles}"
        "    }\n"
        "  }\n"
    )


def _own_settled(layout: CellLayout) -> list[tuple[CellPlace, str]]:
    count = OwnCells(layout).count

    def line(place: CellPlace) -> str:
        word = f"cells.at({place.value}, i / {count})"
        return _by_kind(
            f"settle_sum(mine, blockDim.x, lane, {word}, cells.at({place.value + 1}, i / {count}));",
            f"settle_double(mine, blockDim.x, lane, {word});",
            f"settle_extreme<false>(mine, blockDim.x, lane, {word});",
            f"settle_extreme<true>(mine, blockDim.x, lane, {word});",
        )[place.step.kind]

    places = {p.value: p for p in layout.places if p.step.kind is not AggregateKind.COUNT}
    return [(place, line(place)) for place in places.values()]
