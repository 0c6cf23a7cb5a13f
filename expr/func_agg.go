package expr

// aggregateFuncs make one value of the records of a group. They are used in the select of a window step.
func aggregateFuncs() []Function {
	type kind func(c *Call, t Type) (aggregate, error)
	agg := func(name, sig, summary, args string, typ func(c *Call) (Type, error), k kind, aliases ...string) Function {
		return Function{Name: name, Aliases: aliases, Kind: Aggregate, Category: "aggregate", Signature: sig, Summary: summary,
			Nulls: "NULL arguments are left out; NULL where nothing is left", Args: args, Type: typ, aggregate: k}
	}
	obj := func(name, sig, summary, args string, typ func(c *Call) (Type, error), make func(c *Call) (func() Accumulator, error), aliases ...string) Function {
		f := agg(name, sig, summary, args, typ, nil, aliases...)
		f.NewAggregate = make
		return f
	}
	value := func(p pick) kind {
		return func(*Call, Type) (aggregate, error) { return &valueAgg{pick: p}, nil }
	}
	moment := func(sample, root bool) kind {
		return func(*Call, Type) (aggregate, error) { return &momentAgg{sample, root}, nil }
	}
	is := func(t Type) func(*Call) (Type, error) { return func(*Call) (Type, error) { return t, nil } }
	arg := func(c *Call) (Type, error) { return c.ArgType(0).nullable(), nil }
	double := is(simple(TDouble))
	count := agg("COUNT", "COUNT(*) or COUNT([DISTINCT] value)", "The number of records, or of values that aren't NULL", "?x", is(simple(TBigInt).notNull()),
		func(*Call, Type) (aggregate, error) { return countAgg{}, nil })
	count.Nulls = "NULL arguments are left out"
	approx := obj("APPROX_COUNT_DISTINCT", "APPROX_COUNT_DISTINCT(value)", "About the number of distinct values: exact up to 256, then with a standard error of 1.6 %, in 4 KiB", "x", is(simple(TBigInt).notNull()), newDistinctCount)
	approx.Nulls = count.Nulls
	array := obj("ARRAY_AGG", "ARRAY_AGG([DISTINCT] value)", "The values in the order they came, as an array; NULL and counted as an overflow beyond 16 MiB", "x",
		func(c *Call) (Type, error) { return arrayOf(c.ArgType(0).nullable()), nil }, newArrayAgg)
	array.TakesNull, array.Nulls = true, "NULLs are elements; NULL without records"
	jsonArray := obj("JSON_ARRAYAGG", "JSON_ARRAYAGG(value [NULL ON NULL])", "The values as the text of a JSON array", "x", is(stringType().notNull()), newJSONArrayAgg)
	jsonArray.TakesNull, jsonArray.Nulls = true, "NULLs are left out, with NULL ON NULL they are null"
	jsonObject := obj("JSON_OBJECTAGG", "JSON_OBJECTAGG(KEY text VALUE value [ABSENT ON NULL])", "Names and values as the text of a JSON object, in the order they came", "sx", is(stringType().notNull()), newJSONObjectAgg)
	jsonObject.TakesNull, jsonObject.Nulls = true, "NULL values are null, with ABSENT ON NULL they are left out"
	collect := obj("COLLECT", "COLLECT([DISTINCT] value)", "Each value with the number of times it came, as a map", "x",
		func(c *Call) (Type, error) { return mapOf(c.ArgType(0), simple(TInt)), nil }, newCollect)
	collect.Nulls = "NULL arguments are left out"
	return []Function{
		count,
		agg("SUM", "SUM([DISTINCT] number)", "The sum, exact for integers and decimals; one that doesn't fit the type is NULL, counted", "n", sumType,
			func(_ *Call, t Type) (aggregate, error) { return &sumAgg{t: t}, nil }),
		agg("AVG", "AVG([DISTINCT] number)", "The average; of integers it is one too, without its fraction: AVG(CAST(x AS DOUBLE)) has it", "n", avgType,
			func(_ *Call, t Type) (aggregate, error) { return &sumAgg{t: t, avg: true}, nil }),
		agg("MIN", "MIN(value)", "The smallest value", "x", arg, value(pickMin)),
		agg("MAX", "MAX(value)", "The largest value", "x", arg, value(pickMax)),
		agg("FIRST_VALUE", "FIRST_VALUE(value)", "The value that came first", "x", arg, value(pickFirst)),
		agg("LAST_VALUE", "LAST_VALUE(value)", "The value that came last", "x", arg, value(pickLast)),
		agg("STDDEV_POP", "STDDEV_POP(number)", "The standard deviation of the population", "n", double, moment(false, true)),
		agg("STDDEV_SAMP", "STDDEV_SAMP(number)", "The standard deviation of the sample; NULL for one value", "n", double, moment(true, true), "STDDEV"),
		agg("VAR_POP", "VAR_POP(number)", "The variance of the population", "n", double, moment(false, false)),
		agg("VAR_SAMP", "VAR_SAMP(number)", "The variance of the sample; NULL for one value", "n", double, moment(true, false), "VARIANCE"),
		obj("LISTAGG", "LISTAGG([DISTINCT] text[, separator])", "The texts in the order they came, with the separator (,) between them; NULL and counted as an overflow beyond 16 MiB", "s?s", is(stringType()), newListAgg),
		array, collect, jsonArray, jsonObject,
		obj("PERCENTILE", "PERCENTILE(number, share)", "The value that a share (0 to 1) of the numbers doesn't exceed; an array for an array of shares. Up to 256 numbers it is exact, between two of them; beyond, it is off by at most 1 % of the value", "nx",
			func(c *Call) (Type, error) {
				if c.ArgType(1).Kind == TArray {
					return arrayOf(simple(TDouble)), nil
				}
				return simple(TDouble), nil
			}, newQuantiles),
		approx,
	}
}

// sumType is Flink's: integers and floats keep their type, decimals get all digits.
func sumType(c *Call) (Type, error) {
	t := c.ArgType(0).nullable()
	switch {
	case t.Kind == TDecimal:
		return decimalType(38, t.Scale), nil
	case t.isNumeric():
		return t, nil
	}
	return Any, nil
}

func avgType(c *Call) (Type, error) {
	t := c.ArgType(0).nullable()
	switch {
	case t.Kind == TDecimal:
		return decimalType(38, max(6, t.Scale)), nil
	case t.isNumeric():
		return t, nil
	}
	return Any, nil
}
