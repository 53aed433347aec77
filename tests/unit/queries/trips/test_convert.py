from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from bamquery.queries.trips.convert import Tidied, tidy
from bamquery.queries.trips.schema import TRIPS, map_names


def convert(**columns: pa.Array) -> Tidied:
    return tidy(list(columns.values()), map_names(list(columns), "yellow.parquet"))


def column(name: str, array: pa.Array) -> list[object]:
    tidied = convert(**{name: array})
    assert tidied.problems == {}
    assert tidied.batch.schema == TRIPS
    tidied.batch.validate(full=True)
    (target,) = map_names([name], "yellow.parquet").positions
    return tidied.batch.column(target).to_pylist()


def test_columns_that_the_file_lacks_are_null_and_the_service_is_said() -> None:
    batch = convert(trip_distance=pa.array([1.0, 2.0])).batch
    assert batch.column("service").to_pylist() == ["yellow", "yellow"]
    for name in set(TRIPS.names) - {"service", "trip_distance"}:
        assert batch.column(name).null_count == 2, name


def test_doubles_keep_their_bits() -> None:
    values = pa.array([0.1, -0.0, float("nan"), 5e-324, 2.6299999999999999, None])
    batch = convert(trip_distance=values).batch
    assert batch.column("trip_distance").buffers()[1].to_pybytes() == values.buffers()[1].to_pybytes()
    assert batch.column("trip_distance").null_count == 1


@pytest.mark.parametrize(
    "array",
    [
        pa.array([3, None, -1], pa.int32()),
        pa.array([3.0, None, -1.0], pa.float32()),
        pa.array(["3", None, " -1.00 "]),
        pa.array(["3", "", "-1"], pa.large_string()),
        pa.array(["3", "NaN", "-1"]).dictionary_encode(),
        pa.array([Decimal("3.00"), None, Decimal("-1.00")]),
    ],
)
def test_amounts_of_any_type_become_doubles(array: pa.Array) -> None:
    assert column("fare_amount", array) == [3.0, None, -1.0]


def test_decimals_and_texts_become_the_nearest_double() -> None:
    texts = ["0.1", "21.13", "123456.78", "0.30"]
    assert column("tip_amount", pa.array([Decimal(text) for text in texts])) == [
        float(text) for text in texts
    ]
    assert column("tip_amount", pa.array(texts)) == [float(text) for text in texts]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, None, 99], pa.int64()),
        pa.array([1.0, None, 99.0]),
        pa.array([1.0, float("nan"), 99.0]),
        pa.array(["1", "", " 99.0"]),
        pa.array(["1", None, "99"]).dictionary_encode(),
    ],
)
def test_codes_of_any_type_become_whole_numbers(array: pa.Array) -> None:
    assert column("RatecodeID", array) == [1, None, 99]


def test_words_of_old_files_become_codes() -> None:
    payments = [
        "CASH",
        "Cas",
        "CSH",
        "Credit",
        "CRE",
        "crd",
        "No Charge",
        "No ",
        "NOC",
        "DIS",
        "UNK",
        "NA ",
        None,
    ]
    assert column("Payment_Type", pa.array(payments)) == [2, 2, 2, 1, 1, 1, 3, 3, 3, 4, 5, 5, None]
    assert column("vendor_name", pa.array(["VTS", "CMT", "DDS", "2"])) == [2, 1, 3, 2]


@pytest.mark.parametrize(
    "array",
    [pa.array(["N", "Y", None, "y "]), pa.array([0.0, 1.0, None, 1.0]), pa.array(["0", "1", "", "1"])],
)
def test_flags(array: pa.Array) -> None:
    assert column("store_and_forward", array) == ["N", "Y", None, "Y"]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([datetime(2020, 1, 2, 3, 4, 5)], pa.timestamp("s")),
        pa.array([datetime(2020, 1, 2, 3, 4, 5)], pa.timestamp("ns")),
        pa.array([datetime(2020, 1, 2, 8, 4, 5)], pa.timestamp("us", "UTC")).cast(
            pa.timestamp("us", "America/New_York")
        ),
        pa.array(["2020-01-02 03:04:05"]),
        pa.array([" 2020-01-02T03:04:05"]),
        pa.array(["01/02/2020 03:04:05 AM"]),
        pa.array(["2020-01-02 03:04:05"]).dictionary_encode(),
    ],
)
def test_times_of_any_form_become_local_microseconds(array: pa.Array) -> None:
    assert column("tpep_pickup_datetime", array) == [datetime(2020, 1, 2, 3, 4, 5)]


def test_columns_of_type_null_are_null() -> None:
    assert column("ehail_fee", pa.nulls(2)) == [None, None]
    assert column("store_and_fwd_flag", pa.nulls(2)) == [None, None]


def test_rows_that_cannot_be_read_are_left_out_with_every_reason() -> None:
    rows = 1000
    distances = ["1.5"] * rows
    codes: list[object] = [1] * rows
    distances[7], codes[7] = "far", 1.5
    distances[999] = "1,5"
    codes[500] = 40_000
    tidied = convert(
        trip_distance=pa.array(distances), payment_type=pa.array([float(code) for code in codes])
    )
    assert tidied.problems == {
        7: "trip_distance: 'far' is not a number; "
        "payment_type: 1.5 is not a whole number from -32768 to 32767",
        999: "trip_distance: '1,5' is not a number",
        500: "payment_type: 40000.0 is not a whole number from -32768 to 32767",
    }
    assert tidied.batch.num_rows == rows - 3
    assert tidied.batch.column("trip_distance").null_count == 0


def test_unknown_words_broken_flags_and_times_are_named() -> None:
    tidied = convert(
        payment_type=pa.array(["Barter", "CSH", "CSH", None]),
        store_and_fwd_flag=pa.array(["N", "maybe", "N", "N"]),
        pickup_datetime=pa.array(["2020-01-01", "2020-01-01", "2020-02-30 00:00:00", None]),
    )
    assert tidied.problems == {
        0: "payment_type: 'Barter' is not a whole number or a known word",
        1: "store_and_fwd_flag: 'maybe' is neither N nor Y, 0 nor 1",
        2: "pickup_datetime: '2020-02-30 00:00:00' is not a time",
    }


def test_of_two_columns_the_first_value_wins_and_a_disagreement_is_a_problem() -> None:
    tidied = convert(
        Dispatching_base_number=pa.array(["B1", None, "B3", None]),
        Dispatching_base_num=pa.array([None, "B2", "B4", None]),
    )
    assert tidied.batch.column("dispatching_base").to_pylist() == ["B1", "B2", None]
    assert tidied.problems == {2: "dispatching_base: two values, 'B3' and 'B4'"}
