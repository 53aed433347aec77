"""A column's vectors as a strip, in row order: each cell has as many as it takes for all to fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.human_units import plural
from bamquery.engine.profiling.vector_map import FragmentVectors, VectorState
from bamquery.text.html_elements import element

CELLS: Final = 480
"""Most cells of a strip."""
HEIGHT: Final = 28
WIDTH: Final = 960

LABELS: Final = {
    VectorState.STREAMED: ("streamed", "read with its neighbours, in large requests"),
    VectorState.VECTOR: ("fetched whole", "fetched as one vector, for rows that had passed"),
    VectorState.BLOCKS: ("fetched by block", "only the blocks that hold rows that had passed"),
    VectorState.PASSED_OVER: ("not needed", "none of its rows had passed when the column's turn came"),
    VectorState.PRUNED: ("pruned", "ruled out by zone maps or dynamic filters, not read"),
    VectorState.NOT_REACHED: ("not reached", "nobody wanted more rows"),
}
"""What each state is called, those that read most first, and what it means."""


def cell_counts(states: NDArray[np.uint8], cells: int = CELLS) -> NDArray[np.int64]:
    """How many vectors of each state a cell has: shape (cells or fewer, number of states)."""
    count = len(states)
    cells = min(cells, count)
    places = np.arange(count, dtype=np.int64) * cells // max(count, 1)
    flat = np.bincount(places * len(VectorState) + states, minlength=cells * len(VectorState))
    return flat.reshape(cells, len(VectorState))


def strip(column: str, states: NDArray[np.uint8], fragments: Sequence[FragmentVectors]) -> ET.Element:
    """An SVG picture; a cell of several vectors is divided, from the bottom, by how many have each state."""
    counts = cell_counts(states)
    cells = max(len(counts), 1)
    picture = element(
        "svg",
        viewBox=f"0 0 {cells} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        class_="strip",
        data_vectors=len(states),
        aria_label=f"vectors of {column}: {describe_states(states)}",
    )
    for state in LABELS:
        path = _path(counts, state)
        if path:
            picture.append(element("path", d=path, class_=css_class(state)))
    for edge in _edges(fragments, cells):
        picture.append(element("line", x1=edge, x2=edge, y1=0, y2=HEIGHT, class_="edge"))
    return picture


def describe_states(states: NDArray[np.uint8]) -> str:
    """`12 pruned, 3 streamed of 15 vectors`."""
    counts = np.bincount(states, minlength=len(VectorState))
    found = [f"{int(counts[state]):,} {LABELS[state][0]}" for state in LABELS if counts[state]]
    return f"{', '.join(found) or 'none'} of {plural(len(states), 'vector')}"


def css_class(state: VectorState) -> str:
    """The state's name in the style sheet."""
    return f"s-{state.name.lower().replace('_', '-')}"


def _path(counts: NDArray[np.int64], state: VectorState) -> str:
    """Rectangles of one state, neighbours of equal height as one."""
    order = list(LABELS)
    total = counts.sum(axis=1)
    below = counts[:, order[: order.index(state)]].sum(axis=1)
    pieces: list[str] = []
    start, shape = 0, (0.0, 0.0)
    for cell in range(len(counts) + 1):
        now = (0.0, 0.0)
        if cell < len(counts) and counts[cell, state]:
            size = HEIGHT * counts[cell, state] / total[cell]
            now = (round(HEIGHT - HEIGHT * below[cell] / total[cell] - size, 2), round(size, 2))
        if now != shape:
            if shape[1]:
                pieces.append(f"M{start} {shape[0]:g}h{cell - start}v{shape[1]:g}H{start}z")
            start, shape = cell, now
    return "".join(pieces)


def _edges(fragments: Sequence[FragmentVectors], cells: int) -> list[float]:
    """Where fragments end, but for the last; none where lines would cover the strip."""
    total = sum(fragment.vectors for fragment in fragments)
    ends = np.cumsum([fragment.vectors for fragment in fragments])[:-1]
    if not total or len(ends) > cells // 8:
        return []
    return [round(float(end) * cells / total, 2) for end in ends]
