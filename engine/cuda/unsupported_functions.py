"""Why a function cannot be computed here as the CPU does: what its contract says, and arguments' types."""

from __future__ import annotations

import pyarrow as pa

from bamquery.function_catalog.plan_functions import SCALAR_FUNCTIONS
from bamquery.plan.expressions import Call, Literal


def unsupported_reason(call: Call) -> str | None:
    """Why the function cannot be computed here, or None."""
    contract = SCALAR_FUNCTIONS.get(call.function)
    if contract is None:
        return None
    if contract.cuda_refusal:
        return contract.cuda_refusal
    if call.function.startswith("bit_") and pa.types.is_decimal(call.type):
        return "libcudf's bits are those of integers of up to 64"
    first = contract.cuda_constants_from
    if first is not None and not all(isinstance(a, Literal) for a in call.arguments[first:]):
        return "its arguments after the first must be constants there"
    return None
