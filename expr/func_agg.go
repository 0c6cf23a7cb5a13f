package expr

// aggregateFuncs are known by name, so that a use outside a window says what
// is wrong; the window step brings their implementations.
func aggregateFuncs() []Function {
	agg := func(name, sig, summary string, args string, aliases ...string) Function {
		return Function{Name: name, Aliases: aliases, Kind: Aggregate, Category: "aggregate", Signature: sig, Summary: summary, Nulls: "NULL arguments are left out", Args: args}
	}
	return []Function{
		agg("COUNT", "COUNT(*) or COUNT([DISTINCT] value)", "the number of records, or of values that aren't NULL", "?x*"),
		agg("SUM", "SUM([DISTINCT] number)", "the sum", "n"),
		agg("AVG", "AVG([DISTINCT] number)", "the average", "n"),
		agg("MIN", "MIN(value)", "the smallest value", "x"),
		agg("MAX", "MAX(value)", "the largest value", "x"),
		agg("STDDEV_POP", "STDDEV_POP(number)", "the standard deviation of the population", "n"),
		agg("STDDEV_SAMP", "STDDEV_SAMP(number)", "the standard deviation of the sample", "n", "STDDEV"),
		agg("VAR_POP", "VAR_POP(number)", "the variance of the population", "n"),
		agg("VAR_SAMP", "VAR_SAMP(number)", "the variance of the sample", "n", "VARIANCE"),
		agg("FIRST_VALUE", "FIRST_VALUE(value)", "the first value", "x"),
		agg("LAST_VALUE", "LAST_VALUE(value)", "the last value", "x"),
		agg("LISTAGG", "LISTAGG(text[, separator])", "the texts with the separator (,) between them", "s?s"),
		agg("ARRAY_AGG", "ARRAY_AGG([DISTINCT] value)", "the values, as an array", "x"),
		agg("COLLECT", "COLLECT([DISTINCT] value)", "the values with their number, as a map", "x"),
		agg("PERCENTILE", "PERCENTILE(number, share)", "the value that a share (0 to 1) of the numbers doesn't exceed", "nx"),
	}
}
