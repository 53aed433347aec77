import pytest

from bamquery.errors import CatalogError
from bamquery.queries.questions import AMOUNTS, NAMES, question, questions


def test_each_question_takes_off_one_more_charge() -> None:
    for number, asked in enumerate(questions(), 1):
        assert asked.name == f"q{number}"
        assert asked.columns == ("trip_distance", *AMOUNTS[:number])
        for name in AMOUNTS:
            assert (name in asked.text) == (name in asked.amounts)
        assert asked.text.count("trip_distance >= 30") == 1


def test_the_table_can_be_another() -> None:
    assert question("q1").sql('odd "name"') == (
        "SELECT avg(total_amount / trip_distance) AS dollars_per_mile\n"
        'FROM "odd ""name"""\n'
        "WHERE trip_distance >= 30"
    )


def test_names_are_found_without_case() -> None:
    assert question(" Q3 ").name == "q3"
    with pytest.raises(CatalogError, match='there is no query "q6", only q1, q2, q3, q4, q5'):
        question("q6")
    assert tuple(asked.name for asked in questions(NAMES)) == NAMES
