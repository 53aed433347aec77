"""The functions that plans may call, by canonical name: the contract between binder and devices.

The binder resolves overloads and casts arguments before it makes a `Call`; a device implements each name
for the argument types that its entry lists and nothing wider.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from bamquery.function_catalog import aggregates, any_type, numbers, operators, strings, times, windows
from bamquery.function_catalog.contract import AggregateContract, FunctionContract
from bamquery.function_catalog.entry import Section

Contract = TypeVar("Contract", bound=FunctionContract)


def _contracts(plain: Contract, *sections: Section) -> Iterator[tuple[str, Contract]]:
    """Contracts of the entries that have one of their own, by the function of plans that they become."""
    for section in sections:
        for entry in section.entries:
            if entry.contract is not None or entry.calls is None:
                contract = entry.contract or plain
                assert isinstance(contract, type(plain)), entry.names
                yield entry.plan_functions[0], contract


SCALAR_FUNCTIONS: Final[Mapping[str, FunctionContract]] = MappingProxyType(
    {
        **operators.SCALARS,
        **dict(
            _contracts(FunctionContract(), numbers.SECTION, strings.SECTION, times.SECTION, any_type.SECTION)
        ),
    }
)

WINDOW_FUNCTIONS: Final[Mapping[str, FunctionContract]] = MappingProxyType(
    dict(_contracts(FunctionContract(), windows.SECTION))
)
"""Of a row's place in its partition or frame; plans may call every aggregate over a window, too."""

AGGREGATE_FUNCTIONS: Final[Mapping[str, AggregateContract]] = MappingProxyType(
    {**operators.AGGREGATES, **dict(_contracts(AggregateContract(), aggregates.SECTION))}
)
"""All skip nulls, and are null for a group without values, except where said."""
