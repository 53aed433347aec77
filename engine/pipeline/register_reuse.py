"""Registers that nothing reads any more are written again, so that a program's values stay in the cache."""

from __future__ import annotations

from dataclasses import replace

from bamquery.engine.pipeline.instructions import Operation, Program

_CONSTANTS = (Operation.CONSTANT, Operation.CONSTANT_FLAG)


def reuse_registers(program: Program) -> None:
    """Number the registers of a program in which each is written once, so that few are needed.

    Constants, which are written once for all vectors, keep registers of their own. No instruction writes
    over what it reads.
    """
    last: dict[int, int] = {}
    for place, step in enumerate(program.steps):
        last.update(dict.fromkeys(step.operands, place))
    lasting = set(program.outputs)
    for aggregate in program.aggregates:
        lasting.update(r for r in (aggregate.argument, aggregate.filter) if r is not None)
    lasting.update(step.out for step in program.steps if step.operation in _CONSTANTS)

    names: dict[int, int] = {}
    free: list[int] = []
    count = 0
    for place, step in enumerate(program.steps):
        if step.operation not in _CONSTANTS and free:
            name = free.pop()
        else:
            name, count = count, count + 1
        operands = tuple(names[operand] for operand in step.operands)
        program.steps[place] = replace(step, out=name, operands=operands)
        names[step.out] = name
        done = {o for o in step.operands if last[o] == place} - lasting
        free += sorted(names[operand] for operand in done)
        if step.out not in last and step.out not in lasting:
            free.append(name)  # only asked whether it fits
    program.outputs = [names[register] for register in program.outputs]
    program.aggregates = [
        replace(
            one,
            argument=None if one.argument is None else names[one.argument],
            filter=None if one.filter is None else names[one.filter],
        )
        for one in program.aggregates
    ]
