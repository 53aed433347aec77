"""Aggregate functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bamquery.function_catalog.contract import AggregateContract
from bamquery.function_catalog.entry import Entry, Section

_DOUBLE: Final = "(x DOUBLE) -> DOUBLE"
_SAME: Final = "(x ANY) -> ANY"
_TRUTH: Final = "(condition BOOLEAN) -> BOOLEAN"
_BITS: Final = "(x INTEGRAL) -> INTEGRAL"
_PAIR: Final = "(y DOUBLE, x DOUBLE) -> DOUBLE"
_BY: Final = "(x ANY, by ANY) -> ANY"
_QUANTILE: Final = "(x ANY, q DOUBLE) -> ANY"
_ONCE: Final = AggregateContract(distinct=False)
_ROUNDS: Final = AggregateContract(rounds=True)
_HOLDS_VALUES: Final = AggregateContract(holds_values=True)
_SEQUENCE: Final = replace(_HOLDS_VALUES, ordered=True)
_ORDERED: Final = AggregateContract("of the first such row", distinct=False, ordered=True)
_COMPENSATED: Final = AggregateContract(cuda_refusal="libcudf's sums round each addition")

SECTION: Final = Section(
    "Aggregates",
    "aggregate",
    (
        Entry(
            "count",
            "() -> BIGINT | (x ANY) -> BIGINT",
            "How many rows there are, or values that are not NULL.",
            AggregateContract(),
            calls="count count_star",
            call="count([x])",
        ),
        Entry(
            "sum",
            "(x INTEGRAL) -> HUGEINT | (x DECIMAL) -> DECIMAL | (x DOUBLE) -> DOUBLE",
            "The sum; of integers it is exact.",
            _ROUNDS,
        ),
        Entry("avg mean", _DOUBLE, "The mean.", _ROUNDS),
        Entry("min", _SAME, "The least value; NaN is the greatest number.", _ONCE),
        Entry("max", _SAME, "The greatest value; NaN is the greatest number.", _ONCE),
        Entry(
            "first arbitrary",
            _SAME,
            "The first row's value, be it NULL; ORDER BY says which is first.",
            _ORDERED,
        ),
        Entry("last", _SAME, "The last row's value, be it NULL; ORDER BY says which is last.", _ORDERED),
        Entry("any_value", _SAME, "The first value that is not NULL.", _ORDERED),
        Entry("mode", _SAME, "The value that comes most often, the first of them.", _SEQUENCE),
        Entry(
            "entropy",
            "(x ANY) -> DOUBLE",
            "How little the values tell of each other, in bits (log-2); 0 without any.",
            _HOLDS_VALUES,
        ),
        Entry(
            "approx_count_distinct",
            "(x ANY) -> BIGINT",
            "How many different values there are; exact.",
            calls="count",
        ),
        Entry("favg", _DOUBLE, "The mean, as fsum adds.", _COMPENSATED),
        Entry(
            "fsum sumkahan kahan_sum",
            _DOUBLE,
            "The sum, with what each addition would round away.",
            _COMPENSATED,
        ),
        Entry("product", _DOUBLE, "All values multiplied.", _ROUNDS),
        Entry("geomean geometric_mean", _DOUBLE, "The geometric mean.", calls="avg"),
        Entry(
            "stddev stddev_samp",
            _DOUBLE,
            "The standard deviation of a sample; NULL below two values.",
            AggregateContract(),
            calls="stddev_samp",
        ),
        Entry("stddev_pop", _DOUBLE, "The standard deviation of the whole population."),
        Entry(
            "variance var_samp",
            _DOUBLE,
            "The variance of a sample; NULL below two values.",
            AggregateContract(),
            calls="var_samp",
        ),
        Entry("var_pop", _DOUBLE, "The variance of the whole population."),
        Entry("sem", _DOUBLE, "The standard error of the mean: stddev_pop / sqrt(count)."),
        Entry("mad", _DOUBLE, "The median of the distances from the median.", _HOLDS_VALUES),
        Entry(
            "skewness",
            _DOUBLE,
            "How much further values reach on one side; NULL below three values or without spread.",
        ),
        Entry(
            "kurtosis", _DOUBLE, "The excess kurtosis of a sample; NULL below four values or without spread."
        ),
        Entry(
            "kurtosis_pop",
            _DOUBLE,
            "The excess kurtosis of the whole population; NULL below two values or without spread.",
        ),
        Entry(
            "median",
            _SAME,
            "The value in the middle; where there are two, what is between them, or the lower one.",
            calls="quantile_cont quantile_disc",
        ),
        Entry(
            "quantile_cont",
            _QUANTILE,
            "The value at a share q (a constant, below 0 from the greatest) of the rows, between two values.",
            _HOLDS_VALUES,
        ),
        Entry(
            "quantile_disc quantile",
            _QUANTILE,
            "The value at a share q (a constant, below 0 from the greatest) of the rows.",
            _HOLDS_VALUES,
        ),
        Entry("corr", _PAIR, "The correlation coefficient; NaN where either has no spread."),
        Entry("covar_pop", _PAIR, "The covariance of the whole population."),
        Entry("covar_samp", _PAIR, "The covariance of a sample; NULL below two rows."),
        Entry("regr_avgx", _PAIR, "The mean of x where neither is NULL."),
        Entry("regr_avgy", _PAIR, "The mean of y where neither is NULL."),
        Entry("regr_count", "(y DOUBLE, x DOUBLE) -> UINTEGER", "In how many rows neither is NULL."),
        Entry(
            "regr_intercept", _PAIR, "Where the line that fits best meets x = 0; NULL where x has no spread."
        ),
        Entry("regr_r2", _PAIR, "The coefficient of determination; NULL where x has no spread."),
        Entry("regr_slope", _PAIR, "The slope of the line that fits best; NaN where x has no spread."),
        Entry("regr_sxx", _PAIR, "The sum of squared distances of x from its mean."),
        Entry("regr_sxy", _PAIR, "The sum of products of both distances from the mean."),
        Entry("regr_syy", _PAIR, "The sum of squared distances of y from its mean."),
        Entry(
            "arg_min argmin min_by", _BY, "x of the row with the least `by`, where neither is NULL.", _ORDERED
        ),
        Entry("arg_min_null", _BY, "x of the row with the least `by`, be x NULL.", _ORDERED),
        Entry(
            "arg_max argmax max_by",
            _BY,
            "x of the row with the greatest `by`, where neither is NULL.",
            _ORDERED,
        ),
        Entry("arg_max_null", _BY, "x of the row with the greatest `by`, be x NULL.", _ORDERED),
        Entry("bool_and", _TRUTH, "Whether all are true.", _ONCE),
        Entry("bool_or", _TRUTH, "Whether one is true.", _ONCE),
        Entry(
            "count_if countif",
            "(condition BOOLEAN) -> HUGEINT",
            "In how many rows the condition is true.",
            calls="sum",
        ),
        Entry("bit_and", _BITS, "The bits that all values have.", _ONCE),
        Entry("bit_or", _BITS, "The bits that any value has.", _ONCE),
        Entry("bit_xor", _BITS, "The bits that an odd number of values have."),
        Entry(
            "string_agg group_concat listagg",
            "(text VARCHAR [, separator VARCHAR]) -> VARCHAR",
            "The strings, one behind the other, with a separator (a constant; a comma by default).",
            _SEQUENCE,
        ),
    ),
)
