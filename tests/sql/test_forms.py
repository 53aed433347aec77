"""A few .slt files over packed tables, all vectors in one form; `make test-forms` takes all of them."""

from __future__ import annotations

import pytest

from tests.forced_forms import FORMS, forced_form
from tests.sql import test_slt

_SHORT = ("joins/joins", "set_operations/set_operations", "types/types")


@pytest.mark.parametrize("form", FORMS)
def test_answers_do_not_depend_on_forms(form: str, device_name: str) -> None:
    with forced_form(form):
        for name in _SHORT:
            test_slt.test_bamquery(test_slt.FOLDER / f"{name}.slt", device_name, lambda *_: None)
