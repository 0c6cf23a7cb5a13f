// Package expr is rsetl's SQL scalar expression language: Flink SQL's, compiled
// to closures over the slots of a record.
//
// Parse and ParseTemplate read a source once; a Compiler, one per plan, makes
// Programs of them, which any number of workers run at once, each with its own
// Env over its own batch. Results refer to the batch and live as long as it.
//
// Where rsetl differs from Flink, on purpose:
//
//   - What makes a Flink job fail is NULL: a cast that can't be, a division by
//     zero, a text that is no time. Only what is wrong in the expression itself
//     (an unknown function, types that never fit, a bad pattern) is an error,
//     when it is compiled.
//   - Integer overflow, and a float or decimal too large for its type, is NULL
//     and counted in Env.Overflows, not wrapped or saturated.
//   - != is accepted. A text compared or computed with a number is read as one;
//     the answer is NULL where it is none. || takes any scalar.
//   - Z, offsets and T in timestamps are honoured; 30 February is no date.
//   - UNIX_TIMESTAMP and TO_DATE of bad input are NULL. UNIX_TIMESTAMP and
//     TO_TIMESTAMP know the same formats where no pattern is given.
//   - INTERVAL '1' WEEK is seven days, QUARTER three months; an interval's
//     leading field may have any number of digits, and may be divided.
//   - Fields, FLOOR and CAST of times before 1970 are right; HOUR is never negative.
//   - ASCII is never negative, INITCAP knows letters beyond ASCII, JSON_OBJECT
//     keeps the order given, maps keep their order and have each key once.
//   - COALESCE, IF and CASE evaluate only what they need, so that an error in
//     what isn't chosen doesn't matter.
//   - JSON_VALUE .. RETURNING DOUBLE or DECIMAL takes whole numbers too.
//   - REPEAT and padding make at most 1 MiB, other texts at most 16 MiB: more is NULL.
//   - Times outside the years 0 to 9999 are NULL.
//   - Regular expressions are Go's (RE2): linear, without look-around and back references.
package expr
