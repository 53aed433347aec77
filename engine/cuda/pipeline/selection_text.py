"""The text of kernels that select rows: bits of the rows that fulfil all conditions, a warp a vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bamquery.engine.cuda.pipeline.program_text import ProgramKernel, ProgramText
from bamquery.engine.pipeline.instructions import Program

_HEADER: Final = "engine/kernels/pipeline/selection.hpp"


def selection_text(
    program: Program, flags: Sequence[int], members: Sequence[int], nullable: Sequence[bool]
) -> ProgramKernel:
    """A kernel that selects rows.

    Args:
        program: computes the flags.
        flags: registers that are all true of a row that is wanted.
        members: inputs, each of which is in the set of its number; they are loaded for rows only of which all
            else is true.
        nullable: of each input, whether it has nulls.
    """
    text = ProgramText(program, nullable)
    lines = [*text.lines, f"bool is = {' && '.join(['here', *(f'r{flag}.is' for flag in flags)])};"]
    lines += [
        f"is = is && is_member(sets.of[{number}], {text.load(place)});"
        for number, place in enumerate(members)
    ]
    sets = f"struct Sets {{\n  Members of[{len(members)}];\n}};\n" if members else ""
    body = "".join(f"      {line}\n" for line in lines)
    made = (
        f'#include "{_HEADER}"\n\nnamespace bamquery {{\n\n{text.structures()}{sets}\n'
        'extern "C" __global__ void __launch_bounds__(256)\n'
        f"    program(Inputs inputs, Constants constants, {'Sets sets, ' if members else ''}Word rows,\n"
        "            unsigned* bits, unsigned* counts, unsigned* status) {\n"
        "  bool lost = false;\n"
        "  const unsigned lane = threadIdx.x & 31;\n"
        "  const Word warps = blockDim.x / 32;\n"
        "  for (Word vector = blockIdx.x * warps + threadIdx.x / 32; vector * 1024 < rows;\n"
        "       vector += gridDim.x * warps) {\n"
        "    unsigned mine = 0;\n"
        "    for (unsigned i = 0; i < 32; ++i) {\n"
        "      const Word row = vector * 1024 + i * 32 + lane;\n"
        "      const bool here = row < rows;\n"
        "      const Word at = here ? row : rows - 1;\n"
        f"{body}"
        "      const unsigned word = __ballot_sync(~0u, is);\n"
        "      if (lane == i) mine = word;\n"
        "    }\n"
        "    store_vector(bits, counts, vector, mine);\n"
        "  }\n"
        "  if (lost) *status = 1;\n"
        "}\n\n}  // namespace bamquery\n"
    )
    return ProgramKernel(made, tuple(text.constants), ())
