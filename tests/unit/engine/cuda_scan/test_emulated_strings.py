"""The GPU's own tests of scans of strings and dictionaries, over small tables on a CPU."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gpu.scan.test_scan_strings import (  # noqa: F401 - run here as well
    many_texts,
    one_text,
    own_text,
    test_all_rows,
    test_an_error_in_a_column_of_strings,
    test_chunk_after_chunk,
    test_codes_beyond_their_dictionary,
    test_codes_of_each_width,
    test_conditions_ask_each_value_of_a_dictionary_once,
    test_dictionaries,
    test_direct_reads_of_strings,
    test_filters_on_strings_and_dictionaries,
    test_no_row_passes,
    test_offsets_of_64_bits,
    test_offsets_that_lead_astray,
    test_random_strings,
    test_strings,
    test_strings_that_are_not_those_that_were_written,
    text,
)


@pytest.fixture(scope="module")
def cuda(device: Any) -> Any:
    return device


@pytest.fixture(scope="module")
def text_rows() -> int:
    return 9000
