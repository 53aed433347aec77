"""Aggregate functions."""

from __future__ import annotations

from typing import Final

from bamquery.sql_frontend.functions.reference.entry import Entry, Section

_DOUBLE: Final = "(x DOUBLE) -> DOUBLE"
_SAME: Final = "(x ANY) -> ANY"
_TRUTH: Final = "(condition BOOLEAN) -> BOOLEAN"
_BITS: Final = "(x INTEGRAL) -> INTEGRAL"
_PAIR: Final = "(y DOUBLE, x DOUBLE) -> DOUBLE"
_BY: Final = "(x ANY, by ANY) -> ANY"
_QUANTILE: Final = "(x ANY, q DOUBLE) -> ANY"

SECTION: Final = Section(
    "Aggregates",
    "aggregate",
    (
        Entry(
            "count",
            "() -> BIGINT | (x ANY) -> BIGINT",
            "How many rows there are, or values that are not NULL.",
            calls="count count_star",
            call="count([x])",
        ),
        Entry(
            "sum",
            "(x INTEGRAL) -> HUGEINT | (x DECIMAL) -> DECIMAL | (x DOUBLE) -> DOUBLE",
            "The sum; of integers it is exact.",
        ),
        Entry("avg mean", _DOUBLE, "The mean."),
        Entry("min", _SAME, "The least value; NaN is the greatest number."),
        Entry("max", _SAME, "The greatest value; NaN is the greatest number."),
        Entry("first arbitrary", _SAME, "The first row's value, be it NULL; ORDER BY says which is first."),
        Entry("last", _SAME, "The last row's value, be it NULL; ORDER BY says which is last."),
        Entry("any_value", _SAME, "The first value that is not NULL."),
        Entry("mode", _SAME, "The value that comes most often."),
        Entry("entropy", "(x ANY) -> DOUBLE", "How little the values tell of each other, in bits (log-2)."),
        Entry(
            "approx_count_distinct",
            "(x ANY) -> BIGINT",
            "How many different values there are; exact.",
            calls="count",
        ),
        Entry("favg", _DOUBLE, "The mean, as fsum adds."),
        Entry("fsum sumkahan kahan_sum", _DOUBLE, "The sum, with what each addition would round away."),
        Entry("product", _DOUBLE, "All values multiplied."),
        Entry("geomean geometric_mean", _DOUBLE, "The geometric mean.", calls="avg"),
        Entry("stddev stddev_samp", _DOUBLE, "The standard deviation of a sample.", calls="stddev_samp"),
        Entry("stddev_pop", _DOUBLE, "The standard deviation of the whole population."),
        Entry("variance var_samp", _DOUBLE, "The variance of a sample.", calls="var_samp"),
        Entry("var_pop", _DOUBLE, "The variance of the whole population."),
        Entry("sem", _DOUBLE, "The standard error of the mean."),
        Entry("mad", _DOUBLE, "The median of the distances from the median."),
        Entry("skewness", _DOUBLE, "How much further values reach on one side than on the other."),
        Entry("kurtosis", _DOUBLE, "The excess kurtosis of a sample."),
        Entry("kurtosis_pop", _DOUBLE, "The excess kurtosis of the whole population."),
        Entry(
            "median",
            _SAME,
            "The value in the middle; where there are two, what is between them, or the lower one.",
            calls="quantile_cont quantile_disc",
        ),
        Entry(
            "quantile_cont", _QUANTILE, "The value at a share q (a constant) of the rows, between two values."
        ),
        Entry("quantile_disc quantile", _QUANTILE, "The value at a share q (a constant) of the rows."),
        Entry("corr", _PAIR, "The correlation coefficient."),
        Entry("covar_pop", _PAIR, "The covariance of the whole population."),
        Entry("covar_samp", _PAIR, "The covariance of a sample."),
        Entry("regr_avgx", _PAIR, "The mean of x where neither is NULL."),
        Entry("regr_avgy", _PAIR, "The mean of y where neither is NULL."),
        Entry("regr_count", "(y DOUBLE, x DOUBLE) -> UINTEGER", "In how many rows neither is NULL."),
        Entry("regr_intercept", _PAIR, "Where the line that fits best meets x = 0."),
        Entry("regr_r2", _PAIR, "The coefficient of determination."),
        Entry("regr_slope", _PAIR, "The slope of the line that fits best."),
        Entry("regr_sxx", _PAIR, "The sum of squared distances of x from its mean."),
        Entry("regr_sxy", _PAIR, "The sum of products of both distances from the mean."),
        Entry("regr_syy", _PAIR, "The sum of squared distances of y from its mean."),
        Entry("arg_min argmin min_by", _BY, "x of the row with the least `by`, where neither is NULL."),
        Entry("arg_min_null", _BY, "x of the row with the least `by`, be x NULL."),
        Entry("arg_max argmax max_by", _BY, "x of the row with the greatest `by`, where neither is NULL."),
        Entry("arg_max_null", _BY, "x of the row with the greatest `by`, be x NULL."),
        Entry("bool_and", _TRUTH, "Whether all are true."),
        Entry("bool_or", _TRUTH, "Whether one is true."),
        Entry(
            "count_if countif",
            "(condition BOOLEAN) -> HUGEINT",
            "In how many rows the condition is true.",
            calls="sum",
        ),
        Entry("bit_and", _BITS, "The bits that all values have."),
        Entry("bit_or", _BITS, "The bits that any value has."),
        Entry("bit_xor", _BITS, "The bits that an odd number of values have."),
        Entry(
            "string_agg group_concat listagg",
            "(text VARCHAR [, separator VARCHAR]) -> VARCHAR",
            "The texts, one behind the other, with a separator (a constant; a comma by default).",
        ),
    ),
)
