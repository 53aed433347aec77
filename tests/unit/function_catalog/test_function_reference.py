"""The reference of functions says of each what the registries that calls are bound by do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

import pytest

from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import is_interval, is_numeric
from bamquery.errors import BamQueryError
from bamquery.function_catalog import operators, plan_functions
from bamquery.function_catalog.function_reference import SECTIONS, FunctionRecord, function_records, functions
from bamquery.function_catalog.page import reference_page
from bamquery.function_catalog.session import SESSION_FUNCTIONS
from bamquery.function_catalog.signature import Signature, read_signature
from bamquery.sql_frontend.functions import aggregates, scalar_functions
from bamquery.sql_frontend.functions.aggregates import AGGREGATES
from bamquery.sql_frontend.functions.scalar_functions import FUNCTIONS
from tests.conftest import REPOSITORY
from tests.plans import plan_of

VALUES = {
    "ANY": ("1.5::DOUBLE", "'a'::VARCHAR"),
    "NUMERIC": ("1.5::DOUBLE", "2::BIGINT", "2.5::DECIMAL(5,2)"),
    "INTEGRAL": ("2::BIGINT", "2::SMALLINT"),
    "TEMPORAL": ("DATE '2024-05-17'", "TIMESTAMP '2024-05-17'", "TIME '10:00'", "INTERVAL 1 DAY"),
    "DECIMAL": ("2.5::DECIMAL(5,2)",),
    "VARCHAR": ("'year'", "'hour'"),
    "DOUBLE": ("0.5::DOUBLE",),
    "BOOLEAN": ("true",),
    "INTEGER": ("1",),
}
"""Of what a parameter takes, values; of other types there is NULL, cast to them."""


def test_each_name_is_of_one_entry() -> None:
    for kind in ("scalar", "aggregate", "window", "table"):
        names = [record.name for record in functions() if record.kind == kind]
        assert len(names) == len(set(names)), Counter(names).most_common(3)


def test_each_contract_stands_once() -> None:
    """Of its entry, or where it has no name in SQL among operators; plans call no function without one."""
    for kind, named, others in (
        ("scalar", plan_functions.SCALAR_FUNCTIONS, operators.SCALARS),
        ("aggregate", plan_functions.AGGREGATE_FUNCTIONS, operators.AGGREGATES),
        ("window", plan_functions.WINDOW_FUNCTIONS, {}),
    ):
        entries = [entry for section in SECTIONS if section.kind == kind for entry in section.entries]
        own = [e.plan_functions[0] for e in entries if e.contract is not None or e.calls is None]
        assert sorted([*own, *others]) == sorted({*named, *(SESSION_FUNCTIONS if kind == "scalar" else ())})
        assert {name for entry in entries for name in (entry.calls or "").split()} <= set(named)


def test_builders_are_of_entries() -> None:
    assert set(scalar_functions.BUILDERS) <= {binding.entry.name for binding in FUNCTIONS.values()}
    assert set(aggregates.BUILDERS) <= {binding.entry.name for binding in AGGREGATES.values()}


@pytest.mark.parametrize("record", functions(), ids=lambda record: f"{record.kind}-{record.name}")
def test_descriptions(record: FunctionRecord) -> None:
    assert record.entry.description.endswith(".")
    assert "\n" not in record.entry.description
    assert record.alias_of is None or function_records(record.alias_of)


def calls(record: FunctionRecord, signature: Signature) -> Iterator[str]:
    """Calls with typed values, all parameters given."""
    choices = [VALUES.get(parameter.type, (f"NULL::{parameter.type}",)) for parameter in signature.parameters]
    over = " OVER (ORDER BY 1)" if record.kind == "window" else ""
    for values in product(*choices):
        separator = " IN " if record.name == "position" else ", "
        yield f"SELECT {record.name}({separator.join(values)}){over}"


def fits(kind: str, text: str) -> bool:
    if kind == "ANY":
        return True
    return text.startswith("DECIMAL(") if kind == "DECIMAL" else text == kind


TYPED = [
    (record, signature)
    for record in functions()
    if record.kind != "table" and record.name not in SESSION_FUNCTIONS
    for signature in record.signatures
]


@pytest.mark.parametrize(
    ("record", "signature"), TYPED, ids=[signature.text(record.name) for record, signature in TYPED]
)
def test_types(record: FunctionRecord, signature: Signature) -> None:
    """There are values of the parameters' types that it takes, and the answer has the type that is said."""
    answers = []
    reasons = []
    for call in calls(record, signature):
        try:
            (field,) = plan_of(call).fields
        except BamQueryError as error:
            reasons.append(f"{call}: {error}")
        else:
            answers.append(field.type)
    assert answers, reasons
    for kind in answers:
        match signature.return_type:
            case "NUMERIC" | "INTEGRAL":
                assert is_numeric(kind)
            case "HUGEINT":
                assert type_name(kind) == "DECIMAL(38,0)"
            case "INTERVAL":
                assert is_interval(kind)
            case said:
                assert fits(said, type_name(kind)), (type_name(kind), said)


EXAMPLES = sorted(
    {entry.example for section in SECTIONS if section.title != "The connection" for entry in section.entries}
    - {""}
)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples(example: str) -> None:
    plan_of(f"SELECT {example}")


def test_signatures_as_text() -> None:
    text = "(a VARCHAR, b BIGINT [, c INTEGER [, d VARCHAR]]) -> TIMESTAMP WITH TIME ZONE"
    signature = read_signature(text)
    assert signature.text("f") == f"f{text}"
    assert signature.call("f") == "f(a, b [, c [, d]])"
    assert [parameter.optional for parameter in signature.parameters] == [False, False, True, True]
    assert read_signature("(x ANY, ...) -> ANY").repeated
    assert read_signature("() -> DOUBLE").text("pi") == "pi() -> DOUBLE"


def test_the_page() -> None:
    """To write it anew: python -m bamquery.function_catalog.page > docs/functions.md."""
    assert (REPOSITORY / "docs" / "functions.md").read_text() == reference_page()
