"""Aggregate calls as steps of programs."""

from __future__ import annotations

from bamquery.engine.pipeline.instructions import AggregateKind, AggregateStep
from bamquery.engine.pipeline.lowering import ProgramBuilder
from bamquery.engine.pipeline.registers import Shape
from bamquery.plan.expressions import AggregateCall


def aggregate_step(
    builder: ProgramBuilder, call: AggregateCall, kind: AggregateKind | None
) -> AggregateStep | None:
    """The call over registers of the builder's; None where no program gathers it.

    `kind`: what its states are made of; None where a program has no such thing.
    """
    if kind is None or call.order or len(call.arguments) > 1:
        return None
    argument = builder.add(call.arguments[0]) if call.arguments else None
    kept = None if call.filter is None else builder.add(call.filter)
    if (call.arguments and argument is None) or (call.filter is not None and kept is None):
        return None
    if argument is not None and argument.shape is Shape.FLAG and kind is not AggregateKind.COUNT:
        return None
    return AggregateStep(
        kind, None if argument is None else argument.register, None if kept is None else kept.register
    )
