"""A few .slt files over packed tables, all vectors in one form; `make test-forms` takes all of them."""

from __future__ import annotations

from itertools import product

import pytest

from tests.forced_forms import FORMS, forced_form
from tests.selection.effort import spread
from tests.sql import test_slt

_CASES = [
    *((form, "types/types") for form in FORMS),
    *spread(product(FORMS, ("joins/joins", "set_operations/set_operations")), 3),
]


@pytest.mark.long
@pytest.mark.parametrize(("form", "name"), _CASES)
def test_answers_do_not_depend_on_forms(form: str, name: str, device_name: str) -> None:
    with forced_form(form):
        test_slt.test_bamquery(test_slt.FOLDER / f"{name}.slt", device_name, lambda *_: None)
