package expr

import (
	"fmt"
	"strings"

	"github.com/rsetl/rsetl/record"
)

// TypeKind is the root of a static type.
type TypeKind uint8

const (
	TAny  TypeKind = iota // known at run time only
	TNull                 // of the literal NULL
	TBoolean
	TTinyInt
	TSmallInt
	TInt
	TBigInt
	TFloat
	TDouble
	TDecimal
	TChar
	TVarchar
	TBinary
	TVarbinary
	TDate
	TTime
	TTimestamp
	TTimestampLTZ
	TIntervalMonth
	TIntervalSecond
	TArray
	TMap
	TRow
)

// Type is a static SQL type. The zero Type is ANY: the value's kind decides at
// run time. Types are immutable; ParseType makes one of its name.
//
// A TIMESTAMP is a wall clock, a TIMESTAMP_LTZ an instant, shown in the
// compiler's zone. At run time both are record.Time; a field of type ANY that
// holds one is taken as TIMESTAMP, in UTC.
type Type struct {
	Kind    TypeKind
	NotNull bool
	Prec    int // CHAR, VARCHAR, BINARY: length; DECIMAL: precision; TIME, TIMESTAMP, INTERVAL SECOND: digits of fraction
	Scale   int // DECIMAL: scale; intervals: precision of the leading field
	Unit    string
	Elem    *Type // ARRAY's element, MAP's value
	Key     *Type
	Cols    []Column
}

// Column is one field of a ROW.
type Column struct {
	Name string
	Type Type
}

const maxLen = 2147483647

// Any is the dynamic type.
var Any = Type{}

func simple(k TypeKind) Type { return Type{Kind: k} }

func stringType() Type { return Type{Kind: TVarchar, Prec: maxLen} }
func bytesType() Type  { return Type{Kind: TVarbinary, Prec: maxLen} }
func decimalType(p, s int) Type {
	return Type{Kind: TDecimal, Prec: p, Scale: s}
}
func timestampType(p int) Type { return Type{Kind: TTimestamp, Prec: p} }
func arrayOf(e Type) Type      { return Type{Kind: TArray, Elem: &e} }
func mapOf(k, v Type) Type     { return Type{Kind: TMap, Key: &k, Elem: &v} }

func (t Type) notNull() Type  { t.NotNull = true; return t }
func (t Type) nullable() Type { t.NotNull = false; return t }
func (t Type) null(notNull bool) Type {
	t.NotNull = notNull
	return t
}

// IsAny tells whether the type is known at run time only.
func (t Type) IsAny() bool { return t.Kind == TAny }

func (t Type) isInt() bool     { return t.Kind >= TTinyInt && t.Kind <= TBigInt }
func (t Type) isFloat() bool   { return t.Kind == TFloat || t.Kind == TDouble }
func (t Type) isNumeric() bool { return t.Kind >= TTinyInt && t.Kind <= TDecimal }
func (t Type) isText() bool    { return t.Kind == TChar || t.Kind == TVarchar }
func (t Type) isBytes() bool   { return t.Kind == TBinary || t.Kind == TVarbinary }
func (t Type) isTimestamp() bool {
	return t.Kind == TTimestamp || t.Kind == TTimestampLTZ
}
func (t Type) isInterval() bool { return t.Kind == TIntervalMonth || t.Kind == TIntervalSecond }
func (t Type) isDynamic() bool  { return t.Kind == TAny || t.Kind == TNull }

// String is the type's name as Flink writes it.
func (t Type) String() string {
	var sb strings.Builder
	t.write(&sb)
	return sb.String()
}

func (t Type) write(sb *strings.Builder) {
	switch t.Kind {
	case TAny:
		sb.WriteString("ANY")
		return
	case TNull:
		sb.WriteString("NULL")
		return
	case TBoolean:
		sb.WriteString("BOOLEAN")
	case TTinyInt:
		sb.WriteString("TINYINT")
	case TSmallInt:
		sb.WriteString("SMALLINT")
	case TInt:
		sb.WriteString("INT")
	case TBigInt:
		sb.WriteString("BIGINT")
	case TFloat:
		sb.WriteString("FLOAT")
	case TDouble:
		sb.WriteString("DOUBLE")
	case TDecimal:
		fmt.Fprintf(sb, "DECIMAL(%d, %d)", t.Prec, t.Scale)
	case TChar:
		fmt.Fprintf(sb, "CHAR(%d)", t.Prec)
	case TVarchar:
		if t.Prec >= maxLen {
			sb.WriteString("STRING")
		} else {
			fmt.Fprintf(sb, "VARCHAR(%d)", t.Prec)
		}
	case TBinary:
		fmt.Fprintf(sb, "BINARY(%d)", t.Prec)
	case TVarbinary:
		if t.Prec >= maxLen {
			sb.WriteString("BYTES")
		} else {
			fmt.Fprintf(sb, "VARBINARY(%d)", t.Prec)
		}
	case TDate:
		sb.WriteString("DATE")
	case TTime:
		fmt.Fprintf(sb, "TIME(%d)", t.Prec)
	case TTimestamp:
		fmt.Fprintf(sb, "TIMESTAMP(%d)", t.Prec)
	case TTimestampLTZ:
		fmt.Fprintf(sb, "TIMESTAMP_LTZ(%d)", t.Prec)
	case TIntervalMonth:
		sb.WriteString("INTERVAL " + t.Unit)
	case TIntervalSecond:
		sb.WriteString("INTERVAL " + t.Unit)
	case TArray:
		sb.WriteString("ARRAY<")
		t.Elem.write(sb)
		sb.WriteString(">")
	case TMap:
		sb.WriteString("MAP<")
		t.Key.write(sb)
		sb.WriteString(", ")
		t.Elem.write(sb)
		sb.WriteString(">")
	case TRow:
		sb.WriteString("ROW<")
		for i, c := range t.Cols {
			if i > 0 {
				sb.WriteString(", ")
			}
			sb.WriteString("`" + c.Name + "` ")
			c.Type.write(sb)
		}
		sb.WriteString(">")
	}
	if t.NotNull {
		sb.WriteString(" NOT NULL")
	}
}

// KindType is the widest static type of a run-time kind.
func KindType(k record.Kind) Type {
	switch k {
	case record.Bool:
		return simple(TBoolean)
	case record.Int:
		return simple(TBigInt)
	case record.Float:
		return simple(TDouble)
	case record.Decimal:
		return decimalType(38, 18)
	case record.String:
		return stringType()
	case record.Bytes:
		return bytesType()
	case record.Date:
		return simple(TDate)
	case record.Clock:
		return Type{Kind: TTime}
	case record.Time:
		return timestampType(3)
	case record.Months:
		return intervalType("MONTH", "", -1)
	case record.Duration:
		return intervalType("SECOND", "", -1)
	case record.Array:
		return arrayOf(Any)
	case record.Map:
		return mapOf(Any, Any)
	}
	return Any
}

// intervalType is the type of INTERVAL '..' unit [TO unit] as Flink reports it:
// months always as MONTH, times as SECOND(3).
func intervalType(unit, to string, prec int) Type {
	switch unit {
	case "YEAR", "MONTH", "QUARTER":
		return Type{Kind: TIntervalMonth, Unit: "MONTH"}
	}
	return Type{Kind: TIntervalSecond, Unit: "SECOND(3)", Prec: 3}
}

// asDecimal is a numeric type as the decimal that holds it.
func (t Type) asDecimal() (p, s int) {
	switch t.Kind {
	case TTinyInt:
		return 3, 0
	case TSmallInt:
		return 5, 0
	case TInt:
		return 10, 0
	case TBigInt:
		return 19, 0
	}
	return t.Prec, t.Scale
}

// leastType is the type that holds values of both, ok false where there is none.
func leastType(a, b Type) (Type, bool) {
	nn := a.NotNull && b.NotNull
	switch {
	case a.Kind == TNull:
		return b.nullable(), true
	case b.Kind == TNull:
		return a.nullable(), true
	case a.Kind == TAny || b.Kind == TAny:
		return Any, true
	case a.Kind == b.Kind:
		switch a.Kind {
		case TDecimal:
			s := max(a.Scale, b.Scale)
			p := max(a.Prec-a.Scale, b.Prec-b.Scale) + s
			return decimalType(min(p, 38), s).null(nn), true
		case TChar:
			if a.Prec != b.Prec {
				return Type{Kind: TVarchar, Prec: max(a.Prec, b.Prec), NotNull: nn}, true
			}
		case TBinary:
			if a.Prec != b.Prec {
				return Type{Kind: TVarbinary, Prec: max(a.Prec, b.Prec), NotNull: nn}, true
			}
		case TArray:
			e, ok := leastType(*a.Elem, *b.Elem)
			return arrayOf(e).null(nn), ok
		case TMap:
			k, ok1 := leastType(*a.Key, *b.Key)
			v, ok2 := leastType(*a.Elem, *b.Elem)
			return mapOf(k, v).null(nn), ok1 && ok2
		case TRow:
			if len(a.Cols) != len(b.Cols) {
				return Any, false
			}
			t := Type{Kind: TRow, NotNull: nn}
			for i := range a.Cols {
				e, ok := leastType(a.Cols[i].Type, b.Cols[i].Type)
				if !ok {
					return Any, false
				}
				t.Cols = append(t.Cols, Column{a.Cols[i].Name, e})
			}
			return t, true
		}
		a.Prec = max(a.Prec, b.Prec)
		return a.null(nn), true
	case a.isNumeric() && b.isNumeric():
		if a.isFloat() || b.isFloat() {
			if a.Kind == TDouble || b.Kind == TDouble || a.Kind == TDecimal || b.Kind == TDecimal {
				return simple(TDouble).null(nn), true
			}
			return simple(TFloat).null(nn), true
		}
		if a.Kind == TDecimal || b.Kind == TDecimal {
			p1, s1 := a.asDecimal()
			p2, s2 := b.asDecimal()
			s := max(s1, s2)
			return decimalType(min(max(p1-s1, p2-s2)+s, 38), s).null(nn), true
		}
		if a.Kind > b.Kind {
			return a.null(nn), true
		}
		return b.null(nn), true
	case a.isText() && b.isText():
		return Type{Kind: TVarchar, Prec: max(a.Prec, b.Prec), NotNull: nn}, true
	case a.isBytes() && b.isBytes():
		return Type{Kind: TVarbinary, Prec: max(a.Prec, b.Prec), NotNull: nn}, true
	case (a.isTimestamp() || a.Kind == TDate) && (b.isTimestamp() || b.Kind == TDate):
		t := Type{Kind: TTimestamp, Prec: max(a.Prec, b.Prec), NotNull: nn}
		if a.Kind == TTimestampLTZ || b.Kind == TTimestampLTZ {
			t.Kind = TTimestampLTZ
		}
		return t, true
	}
	return Any, false
}
