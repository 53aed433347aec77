"""Generated tables against the numbers measured on real files, each with its tolerance."""

import functools
import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bamquery.errors import CatalogError
from bamquery.queries.generator.generate import TripGenerator, generate
from bamquery.queries.generator.recipe import COLUMNS, ORDERS, Q5_COLUMNS, Recipe
from bamquery.queries.generator.years import TAILS
from bamquery.queries.trips.schema import TRIPS
from bamquery.storage.database.database import Database

ROWS = 200_000


def make(recipe: Recipe, threads: int = 2, batch_rows: int = 1 << 15) -> pa.Table:
    generator = TripGenerator(recipe)
    return pa.Table.from_batches(list(generator.batches(threads, batch_rows)), generator.schema)


@functools.cache
def year(number: int, order: str = "time") -> pa.Table:
    return make(
        Recipe(ROWS, columns=tuple(COLUMNS), first_year=number, last_year=number, order=order)  # type: ignore[arg-type]
    )


def numbers(table: pa.Table, column: str) -> np.ndarray:
    return table[column].to_numpy()


def shares(table: pa.Table, column: str) -> dict[object, float]:
    counts = table[column].drop_null().value_counts().to_pylist()
    total = sum(entry["counts"] for entry in counts)
    return {entry["values"]: entry["counts"] / total for entry in counts}


def near(found: float, wanted: float, relative: float, absolute: float = 0.0) -> bool:
    return abs(found - wanted) <= relative * abs(wanted) + absolute


# --- the same bytes whatever way they are made ---


@pytest.mark.parametrize("order", ORDERS)
def test_chunks_and_threads_change_nothing(order: str) -> None:
    recipe = Recipe(70_000, columns=tuple(COLUMNS), order=order, seed=5)  # type: ignore[arg-type]
    whole = make(recipe, threads=1, batch_rows=70_000).combine_chunks()
    for threads, batch_rows in ((2, 1024), (3, 9_999), (5, 65_536)):
        assert make(recipe, threads, batch_rows).combine_chunks().equals(whole)


@pytest.mark.parametrize("order", ORDERS)
def test_other_columns_change_nothing(order: str) -> None:
    whole = make(Recipe(20_000, columns=tuple(COLUMNS), order=order))  # type: ignore[arg-type]
    for name in COLUMNS:
        assert make(Recipe(20_000, columns=(name,), order=order))[name].equals(whole[name]), name  # type: ignore[arg-type]


def test_the_orders_hold_the_same_rows() -> None:
    columns = ("pickup_datetime", "trip_distance", "fare_amount", "total_amount", "tip_amount")
    keys = [(name, "ascending") for name in columns]
    tables = [make(Recipe(50_000, columns, order)).combine_chunks() for order in ORDERS]
    assert not tables[0].equals(tables[1])
    for table in tables[1:]:
        assert table.sort_by(keys).equals(tables[0].sort_by(keys))


def test_another_seed_other_rows() -> None:
    first, second = (make(Recipe(10_000, seed=seed)) for seed in (1, 2))
    same = pc.mean(pc.equal(first["trip_distance"], second["trip_distance"])).as_py()
    assert same < 0.02


def test_golden_rows() -> None:
    """Equal recipes give equal bytes on every machine and in every version (unless a change is meant)."""
    table = make(Recipe(1_000_000, match_share=0.0003, nulls=False, order="random")).slice(500_000, 3)
    assert table.to_pydict() == {
        "trip_distance": [4.85, 2.64, 16.58],
        "total_amount": [13.7, 15.39, 71.12],
        "extra": [0.0, 0.0, 0.0],
        "improvement_surcharge": [0.0, 0.3, 0.0],
        "tolls_amount": [0.0, 0.0, 4.8],
        "mta_tax": [0.0, 0.5, 0.5],
    }
    digest = hashlib.sha256()
    for column in make(Recipe(20_000, tuple(COLUMNS))).combine_chunks().columns:
        digest.update(repr(column.to_pylist()).encode())
    assert digest.hexdigest() == "b018cd84c17729670a867e85b2663146f192abb345d3be4d8f25c94d4adfb858"


def test_straight_into_a_database(tmp_path: Path) -> None:
    recipe = Recipe(100_000, order="random", match_share=0.001)
    with Database.open(tmp_path / "taxi.bq") as database:
        generate(database, "generated", recipe, threads=2)
        with pytest.raises(CatalogError, match="exists already"):
            generate(database, "generated", recipe, threads=2)
        generate(database, "generated", recipe, threads=3, replace=True)
        with database.table("generated").snapshot() as snapshot:
            parts = [pa.ipc.open_file(str(fragment.path)).read_all() for fragment in snapshot.fragments]
    assert pa.concat_tables(parts).combine_chunks().equals(make(recipe).combine_chunks())


@pytest.mark.slow
def test_any_size_in_bounded_memory(tmp_path: Path) -> None:
    """40 M rows are ten fragments; two are in memory at a time, so ten times as many would take no more."""
    program = f"""
from bamquery.queries.command_line import main
from tests.peak_memory import peak_bytes
main(["generate", {str(tmp_path / "taxi.bq")!r}, "--rows", "40M", "--order", "random"])
print(peak_bytes() >> 20)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert int(done.stdout.split()[-1]) < 1000


# --- shape ---


def test_columns_are_those_of_trips() -> None:
    assert year(2018).schema == pa.schema([TRIPS.field(name) for name in COLUMNS])
    assert set(Q5_COLUMNS) <= set(COLUMNS)
    year(2018).validate(full=True)


@pytest.mark.parametrize("rows", [0, 1, 31, 32, 33, 1023, 1024, 1025])
def test_any_number_of_rows(rows: int) -> None:
    for order in ORDERS:
        assert make(Recipe(rows, order=order)).num_rows == rows


def test_without_nulls_there_are_none() -> None:
    table = make(Recipe(50_000, columns=tuple(COLUMNS), nulls=False))
    assert all(table[name].null_count == 0 for name in COLUMNS)


def test_amounts_are_the_doubles_nearest_to_cents() -> None:
    for name in ("trip_distance", "fare_amount", "tip_amount", "total_amount"):
        values = numbers(year(2019), name)
        assert np.array_equal(values, np.array([float(f"{value:.2f}") for value in values])), name


# --- distances ---

TAIL_MILES = (5, 10, 15, 20, 25, 30)


@pytest.mark.parametrize(
    ("number", "tail"),
    [
        (2009, (9.8, 3.7, 1.5, 0.24, 0.032, 0.006)),
        (2013, (12.5, 4.2, 1.9, 0.33, 0.060, 0.033)),
        (2018, (14.4, 6.2, 3.2, 0.71, 0.149, 0.044)),
        (2020, (14.8, 5.8, 2.7, 0.80, 0.224, 0.073)),
        (2023, (16.5, 8.3, 5.1, 1.1, 0.33, 0.127)),
    ],
)
def test_tail_of_distances(number: int, tail: tuple[float, ...]) -> None:
    """Within 20 % and the noise of the rarest (four times the spread of independent draws)."""
    miles = numbers(year(number), "trip_distance")
    for mile, percent in zip(TAIL_MILES, tail, strict=True):
        wanted = percent / 100
        noise = 4 * np.sqrt(wanted / ROWS)
        assert near(np.mean(miles >= mile), wanted, 0.2, noise), (mile, np.mean(miles >= mile))


def test_quantiles_of_distances_2018() -> None:
    """Within 5 % (and the two decimals of the files)."""
    miles = numbers(year(2018), "trip_distance")
    wanted = {0.05: 0.48, 0.25: 0.97, 0.5: 1.60, 0.75: 3.03, 0.9: 7.0, 0.95: 11.0, 0.99: 19.1, 0.999: 26.9}
    for share, mile in wanted.items():
        assert near(np.quantile(miles, share), mile, 0.05, 0.01), share


@pytest.mark.parametrize(
    ("number", "mean", "spread"), [(2009, 0.45, 0.88), (2018, 0.61, 0.94), (2023, 0.72, 0.96)]
)
def test_logarithm_of_distances(number: int, mean: float, spread: float) -> None:
    """Mean and standard deviation within 0.06."""
    miles = numbers(year(number), "trip_distance")
    logs = np.log(miles[miles > 0])
    assert abs(logs.mean() - mean) < 0.06
    assert abs(logs.std() - spread) < 0.06


# --- amounts ---


def test_fare_follows_distance_2018() -> None:
    """Fare 4.78 + 2.78 d (3 %), deviation 4.0 (10 %), r .94 (.02); total in 2019 7.47 + 3.41 d (15, 5 %)."""
    miles, fare = numbers(year(2018), "trip_distance"), numbers(year(2018), "fare_amount")
    sane = (miles > 0) & (miles < 100) & (fare > 0) & (fare < 200)
    slope, start = np.polyfit(miles[sane], fare[sane], 1)
    assert near(slope, 2.78, 0.03)
    assert near(start, 4.78, 0.03)
    assert near(np.std(fare[sane] - slope * miles[sane] - start), 4.0, 0.1)
    assert abs(np.corrcoef(miles[sane], fare[sane])[0, 1] - 0.94) < 0.02
    miles, total = numbers(year(2019), "trip_distance"), numbers(year(2019), "total_amount")
    sane = (miles > 0) & (miles < 100) & (total > 0) & (total < 300)
    slope, start = np.polyfit(miles[sane], total[sane], 1)
    assert near(slope, 3.41, 0.05)
    assert near(start, 7.47, 0.15)


@pytest.mark.parametrize(
    ("number", "quantiles"),
    [
        (2009, (5.8, 8.1, 11.7, 25.6, 49)),
        (2017, (8.75, 11.8, 17.8, 46, 70)),
        (2019, (11.2, 14.7, 20.8, 52, 75)),
        (2020, (10.8, 14.2, 19.9, 44, 72)),
        (2023, (15.4, 20.1, 28.6, 81, 103)),
    ],
)
def test_quantiles_of_totals(number: int, quantiles: tuple[float, ...]) -> None:
    """Within 8 %."""
    total = numbers(year(number), "total_amount")
    for share, wanted in zip((0.25, 0.5, 0.75, 0.95, 0.99), quantiles, strict=True):
        assert near(np.quantile(total, share), wanted, 0.08), (share, np.quantile(total, share))


@pytest.mark.parametrize(
    ("number", "percent"), [(2009, 0), (2018, 0.07), (2019, 0.19), (2020, 0.44), (2023, 0.84)]
)
def test_refunds(number: int, percent: float) -> None:
    """Share of negative totals within 10 % and the noise; all of a refund's charges are negative."""
    table = year(number)
    total = numbers(table, "total_amount")
    assert near(np.mean(total < 0), percent / 100, 0.1, 4 * np.sqrt(percent / 100 / ROWS))
    assert np.all(numbers(table, "fare_amount")[total < 0] < 0)
    assert np.all(numbers(table, "tip_amount") >= 0)


EXTRAS = {
    2009: {0: 0.56, 0.5: 0.30, 1: 0.14},
    2018: {0: 0.53, 0.5: 0.30, 1: 0.16, 4.5: 0.005},
    2019: {0: 0.38, 0.5: 0.20, 2.5: 0.16, 1: 0.11, 3: 0.085, 3.5: 0.05},
}


@pytest.mark.parametrize("number", EXTRAS)
def test_surcharges(number: int) -> None:
    """Within three points (in a hundred trips)."""
    found = shares(year(number), "extra")
    for value, share in EXTRAS[number].items():
        assert abs(found[value] - share) < 0.03, value
    assert sum(found[value] for value in EXTRAS[number]) > 0.97


def test_surcharge_by_hour_2018() -> None:
    """0.5 in 97 % of the trips from 20 to 6 h; 1 in about 70 % of those from 16 to 20 h, all on weekdays."""
    table = year(2018)
    times = table["pickup_datetime"]
    hours, days = pc.hour(times).to_numpy(), pc.day_of_week(times).to_numpy()
    extra = np.abs(numbers(table, "extra"))
    night, rush = (hours >= 20) | (hours < 6), (hours >= 16) & (hours < 20)
    assert abs(np.mean(extra[night] == 0.5) - 0.95) < 0.03
    assert abs(np.mean(extra[rush] == 1) - 0.70) < 0.03
    assert not np.any(extra[rush & (days >= 5)] == 1)
    assert not np.any(extra[~night & ~rush])


def test_taxes_and_fees() -> None:
    """Null where the files have no such column; commonest values within two points."""
    assert year(2009)["mta_tax"].null_count == ROWS
    assert abs(shares(year(2010), "mta_tax")[0.5] - 0.96) < 0.02
    assert abs(shares(year(2010), "mta_tax")[-1.0] - 0.03) < 0.01
    assert shares(year(2018), "mta_tax")[0.5] > 0.98
    assert year(2013)["improvement_surcharge"].null_count == ROWS
    assert shares(year(2018), "improvement_surcharge")[0.3] > 0.99
    assert 0.97 < shares(year(2023), "improvement_surcharge")[1.0] < 0.995
    assert year(2018)["congestion_surcharge"].null_count == ROWS
    assert 0.83 < shares(year(2020), "congestion_surcharge")[2.5] < 0.92
    assert abs(shares(year(2023), "airport_fee")[1.25] - 0.087) < 0.03


@pytest.mark.parametrize(
    ("number", "percent", "main"),
    [
        (2009, 2.8, 4.15),
        (2010, 3.4, 4.57),
        (2017, 5.2, 5.76),
        (2018, 5.7, 5.76),
        (2020, 4.4, 6.12),
        (2023, 7.5, 6.55),
    ],
)
def test_tolls(number: int, percent: float, main: float) -> None:
    """Share of trips with a toll within 10 %; one value holds 70 to 94 % of them."""
    found = shares(year(number), "tolls_amount")
    paid = 1 - found[0.0]
    assert near(paid, percent / 100, 0.1)
    assert 0.70 < found[main] / paid < 0.94


def test_toll_by_distance_2018() -> None:
    """Likelihood within five points."""
    miles, tolls = numbers(year(2018), "trip_distance"), numbers(year(2018), "tolls_amount")
    for low, high, share in ((0.5, 5, 0.004), (5, 8, 0.07), (8, 15, 0.51), (15, 30, 0.70)):
        among = (miles >= low) & (miles < high)
        assert abs(np.mean(tolls[among] != 0) - share) < 0.05, low


def test_long_trips() -> None:
    """What the rows that Q1 to Q5 read look like (2018 to 2020), with ten times as many of them."""
    table = make(Recipe(ROWS, tuple(COLUMNS), first_year=2018, last_year=2020, match_share=0.01, nulls=False))
    long = table.filter(pc.greater_equal(table["trip_distance"], 30))
    assert 125 < pc.mean(long["total_amount"]).as_py() < 165
    assert 0.6 < np.mean(numbers(long, "mta_tax") != 0) < 0.83
    assert 0.18 < np.mean(numbers(long, "extra") != 0) < 0.36
    assert 0.62 < np.mean(numbers(long, "tolls_amount") != 0) < 0.75
    assert np.mean(numbers(long, "improvement_surcharge") != 0) > 0.99
    codes = shares(long, "rate_code_id")
    for code, low, high in (
        (5, 0.15, 0.38),
        (1, 0.16, 0.35),
        (4, 0.12, 0.25),
        (3, 0.07, 0.17),
        (2, 0.01, 0.25),
    ):
        assert low < codes[code] < high, code


# --- codes, places, times ---

CODES = {
    (2018, "passenger_count"): {1: 0.71, 2: 0.145, 3: 0.042, 4: 0.02, 5: 0.045, 6: 0.028, 0: 0.009},
    (2009, "passenger_count"): {1: 0.61, 2: 0.16, 5: 0.16},
    (2009, "payment_type"): {2: 0.78, 1: 0.21},
    (2018, "payment_type"): {1: 0.695, 2: 0.298, 3: 0.0055, 4: 0.0015},
    (2018, "rate_code_id"): {1: 0.969, 2: 0.0235, 5: 0.0043, 3: 0.0022, 4: 0.0008},
}


@pytest.mark.parametrize(("number", "column"), CODES)
def test_codes(number: int, column: str) -> None:
    """Within 10 % and 0.3 points."""
    found = shares(year(number), column)
    for code, share in CODES[number, column].items():
        assert near(found[code], share, 0.1, 0.003), (code, found[code])


@pytest.mark.parametrize(
    ("column", "cumulated"),
    [
        ("pickup_location_id", {1: 0.04, 10: 0.35, 20: 0.60, 50: 0.95}),
        ("dropoff_location_id", {1: 0.04, 10: 0.31, 20: 0.53, 50: 0.87}),
    ],
)
def test_zones_2018(column: str, cumulated: dict[int, float]) -> None:
    """Shares of the most popular zones within two points; more than 200 zones."""
    found = sorted(shares(year(2018), column).values(), reverse=True)
    assert len(found) > 200
    for top, share in cumulated.items():
        assert abs(sum(found[:top]) - share) < 0.02, top
    assert year(2009)[column].null_count == ROWS


def test_positions_before_zones() -> None:
    """Coordinates in New York, 1.2 to 2.3 % of them zero; none once there are zones."""
    for name, middle in (("pickup_longitude", -73.978), ("dropoff_latitude", 40.751)):
        degrees = numbers(year(2013), name)
        assert 0.012 < np.mean(degrees == 0) < 0.023
        assert np.all(np.abs(degrees[degrees != 0] - middle) < 0.06)
        assert year(2018)[name].null_count == ROWS


HOURS_2018 = (
    3.2, 2.2, 1.5, 1.1, 0.9, 1.0, 2.2, 3.6, 4.6, 4.6, 4.7, 5.0, 5.2, 5.2, 5.5, 5.4, 5.0, 5.7, 6.5, 6.1, 5.5,
    5.6, 5.3, 4.4,
)  # fmt: skip


def test_hours_and_weekdays_2018() -> None:
    """Hours within 0.4 points, weekdays within 0.8."""
    times = year(2018)["pickup_datetime"]
    hours = np.bincount(pc.hour(times).to_numpy(), minlength=24) / ROWS * 100
    assert np.all(np.abs(hours - HOURS_2018) < 0.4)
    days = np.bincount(pc.day_of_week(times).to_numpy(), minlength=7) / ROWS * 100
    assert np.all(np.abs(days - (13.5, 14.1, 14.8, 15.2, 15.3, 14.5, 12.6)) < 0.8)
    assert pc.unique(pc.year(times)).to_pylist() == [2018]


def test_durations_2018() -> None:
    """Median and percentiles within 12 %; 0.1 % without duration, 0.2 % of about a day."""
    table = year(2018)
    lasted = (
        pc.subtract(table["dropoff_datetime"], table["pickup_datetime"]).cast(pa.int64()).to_numpy() / 1e6
    )
    for share, seconds in ((0.5, 669), (0.95, 2248), (0.99, 3723)):
        assert near(np.quantile(lasted, share), seconds, 0.12), (share, np.quantile(lasted, share))
    assert near(np.mean(lasted <= 0), 0.001, 0.4)
    assert near(np.mean(lasted > 80_000), 0.002, 0.4)


# --- physical order ---


@pytest.mark.parametrize("number", [2013, 2018, 2020])
def test_order_of_time(number: int) -> None:
    """Rank correlation above .999 but not sorted: 53 % of neighbours ascend (two points)."""
    times = numbers(year(number), "pickup_datetime").astype(np.int64)
    ranks = np.argsort(np.argsort(times, kind="stable"))
    assert np.corrcoef(ranks, np.arange(ROWS))[0, 1] > 0.999
    assert abs(np.mean(np.diff(times) > 0) - 0.53) < 0.02


def test_random_order_has_no_order() -> None:
    times = numbers(year(2018, "random"), "pickup_datetime").astype(np.int64)
    ranks = np.argsort(np.argsort(times, kind="stable"))
    assert abs(np.corrcoef(ranks, np.arange(ROWS))[0, 1]) < 0.02
    assert abs(np.mean(np.diff(times) > 0) - 0.5) < 0.01


@pytest.mark.parametrize("column", ["passenger_count", "rate_code_id", "store_and_fwd_flag", "payment_type"])
def test_null_tails_2020(column: str) -> None:
    """One contiguous tail at the end of each month's rows, of the share measured for that month."""
    table = year(2020)
    months = pc.month(table["pickup_datetime"]).to_numpy()
    missing = pc.is_null(table[column]).to_numpy()
    for month, share in enumerate(TAILS[2020], 1):
        found = missing[months == month]
        assert np.all(np.diff(found.astype(int)) >= 0)
        assert abs(found.mean() - share) < 1 / len(found)


def vectors_with_a_long_trip(table: pa.Table) -> tuple[float, float]:
    """Share of vectors of 1,024 rows that hold one, and what it would be if trips were independent."""
    hits = np.add.reduceat(numbers(table, "trip_distance") >= 30, np.arange(0, table.num_rows, 1024))
    return float(np.mean(hits > 0)), 1 - float(np.exp(-hits.mean()))


def test_vectors_with_a_long_trip_in_random_order() -> None:
    """26 % at 0.03 %: what zone maps can prune of unclustered data."""
    table = make(Recipe(4_000_000, ("trip_distance",), "random", match_share=0.0003))
    share, independent = vectors_with_a_long_trip(table)
    assert abs(independent - 0.26) < 0.02
    assert abs(share - independent) < 0.02


@pytest.mark.parametrize(("number", "low", "high"), [(2018, 0.9, 1.1), (2020, 0.8, 0.95), (2023, 0.6, 0.88)])
def test_vectors_with_a_long_trip_in_order_of_time(number: int, low: float, high: float) -> None:
    """Fewer than if trips were independent where files have tails (real: .88 in 2020-03, .58 in 2024-01)."""
    table = make(Recipe(1_000_000, ("trip_distance",), first_year=number, last_year=number))
    share, independent = vectors_with_a_long_trip(table)
    assert low < share / independent < high


def test_clustered_rows_hold_their_long_trips_together() -> None:
    table = make(Recipe(1_000_000, ("trip_distance",), "clustered", match_share=0.0003))
    share, independent = vectors_with_a_long_trip(table)
    assert share < 0.01
    assert independent > 0.2


@pytest.mark.parametrize("order", ORDERS)
def test_match_share_of_the_paper(order: str) -> None:
    """0.03 % of the rows, within the noise."""
    table = make(Recipe(1_000_000, ("trip_distance",), order, match_share=0.0003))  # type: ignore[arg-type]
    assert abs(np.sum(numbers(table, "trip_distance") >= 30) - 300) < 5 * np.sqrt(300)
