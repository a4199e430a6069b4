"""Functions of SQL that row patterns treat in their own way: navigation, aggregates, and which of these are special."""

from __future__ import annotations

from weft.languages.sql.words import word_set

NAVIGATION = frozenset({"first", "last", "prev", "next"})
AGGREGATES = word_set(
    """count sum avg mean min max array_agg collect_list collect_set max_by min_by any_value arbitrary stddev
    stddev_samp stddev_pop variance var_samp var_pop bool_and bool_or every any some count_if string_agg listagg
    approx_distinct approx_count_distinct median mode percentile approx_percentile map_agg map_union product corr
    covar_samp covar_pop histogram geometric_mean checksum bit_and bit_or bit_xor kurtosis skewness regr_slope
    regr_intercept"""
)
COUNTS_ROWS = frozenset({"count"})
SAME_NAME = {  # what several products call differently, by Spark's name
    **{"mean": "avg", "array_agg": "collect_list", "arbitrary": "any_value", "every": "bool_and", "some": "bool_or"},
    **{"any": "bool_or", "stddev": "stddev_samp", "variance": "var_samp", "listagg": "string_agg"},
    **{"approx_distinct": "approx_count_distinct"},
    **{"ceiling": "ceil", "pow": "power", "substr": "substring", "lcase": "lower", "ucase": "upper", "nvl": "coalesce"},
    **{"char_length": "length", "character_length": "length", "len": "length", "ifnull": "coalesce", "log": "ln"},
    **{"cardinality": "size", "array_length": "size", "starts_with": "startswith", "ends_with": "endswith"},
    **{"dayofmonth": "day", "datediff": "date_diff", "isnull": "is null"},
}


def spelled(name: str) -> str:
    """The name of a function as the algebra has it: in lower case, by the name that Spark has for it."""
    lower = name.lower()
    return SAME_NAME.get(lower, lower)
