package advise

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Need is a list of terms that a policy must meet, all of them. Each quantity occurs at most once, in
// the order of [Quantity]. Its text is the terms joined by commas, such as
//
//	loss<=1s,rate>=50k/s,p99<10ms
type Need []Term

// A Term limits one quantity.
type Term struct {
	Of     Quantity
	Strict bool // less than Limit, not Limit itself
	Unit   Unit
	Limit  int64 // in the unit
}

// A Quantity is the subject of a term.
type Quantity int

// The quantities.
const (
	Loss   Quantity = iota // data lost at a power cut
	Crash                  // data lost when the process ends and the machine goes on
	Rate                   // records or bytes written a second
	P50                    // this and the next: the time of a Write
	P90                    //
	P99                    //
	P999                   //
	Max                    //
	CPU                    // the share of one CPU at the rate
	Memory                 // bytes that a Writer holds
)

// A Unit says what the number of a term counts.
type Unit int

// The units.
const (
	Time    Unit = iota // nanoseconds
	Bytes               // bytes
	Records             // records a second
	Stream              // bytes a second
	Share               // hundredths of a percent of one CPU
)

// A form is the syntax of a quantity's terms.
type form struct {
	name    string
	signs   string // the allowed ones, between spaces
	example string
	parse   func(text string) (Unit, int64, error)
}

// forms are in the order of the quantities.
var forms = []form{
	Loss:  {"loss", "<=", "loss<=1s, loss<=0 or loss<=64KiB", parseLoss},
	Crash: {"crash", "<=", "crash<=100ms, crash<=0 or crash<=64KiB", parseLoss},
	Rate:  {"rate", ">=", "rate>=50k/s (records) or rate>=10MiB/s (bytes)", parseRate},
	P50:   {"p50", "< <=", "p50<1ms", parseTime},
	P90:   {"p90", "< <=", "p90<5ms", parseTime},
	P99:   {"p99", "< <=", "p99<10ms", parseTime},
	P999:  {"p99.9", "< <=", "p99.9<50ms", parseTime},
	Max:   {"max", "< <=", "max<100ms", parseTime},
	CPU:   {"cpu", "<=", "cpu<=5% (of one CPU, at the rate)", parseShare},
	Memory: {"memory", "<=", "memory<=128KiB", func(text string) (Unit, int64, error) {
		size, err := holdfast.ParseSize(text)
		return Bytes, int64(size), err
	}},
}

// String returns the quantity's name, with which a term begins.
func (q Quantity) String() string { return forms[q].name }

// ParseNeed reads a need's text; ParseNeed(n.String()) is n.
func ParseNeed(text string) (Need, error) {
	var n Need
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("the need is empty; write it like loss<=1s,rate>=50k/s,p99<10ms")
	}
	if strings.ContainsAny(text, ";&|") {
		return nil, fmt.Errorf("%q: terms are joined by commas, as in loss<=1s,rate>=50k/s,p99<10ms", text)
	}
	for part := range strings.SplitSeq(text, ",") {
		t, err := parseTerm(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if _, twice := n.Term(t.Of); twice {
			return nil, fmt.Errorf("%q: %v is given twice", text, t.Of)
		}
		n = append(n, t)
	}
	slices.SortFunc(n, func(a, b Term) int { return int(a.Of - b.Of) })
	return n, n.validate(text)
}

// With returns the terms of n and other; for a quantity of both it takes other's term.
func (n Need) With(other Need) (Need, error) {
	both := slices.Clone(other)
	for _, t := range n {
		if _, replaced := other.Term(t.Of); !replaced {
			both = append(both, t)
		}
	}
	slices.SortFunc(both, func(a, b Term) int { return int(a.Of - b.Of) })
	return both, both.validate(both.String())
}

// validate refuses a term that has no meaning without another one.
func (n Need) validate(text string) error {
	_, rate := n.Term(Rate)
	if _, cpu := n.Term(CPU); cpu && !rate {
		return fmt.Errorf("%q: cpu is the share of one CPU at a rate, and no rate is given; add one, such as rate>=50k/s", text)
	}
	return nil
}

// Term returns the term of a quantity, if there is one.
func (n Need) Term(q Quantity) (Term, bool) {
	for _, t := range n {
		if t.Of == q {
			return t, true
		}
	}
	return Term{}, false
}

// parseTerm reads a name, a sign and a value.
func parseTerm(text string) (Term, error) {
	at := strings.IndexAny(text, "<>=")
	if at < 0 {
		return Term{}, fmt.Errorf("%q has no <=, < or >=; write it like loss<=1s, rate>=50k/s or p99<10ms", text)
	}
	name, rest := strings.TrimSpace(text[:at]), text[at:]
	value := strings.TrimLeft(rest, "<>=")
	sign := rest[:len(rest)-len(value)]
	for q, f := range forms {
		if f.name != name {
			continue
		}
		if !slices.Contains(strings.Fields(f.signs), sign) {
			return Term{}, fmt.Errorf("%q: %s takes %s and not %s; write it like %s", text, name, strings.ReplaceAll(f.signs, " ", " or "), sign, f.example)
		}
		unit, limit, err := f.parse(strings.TrimSpace(value))
		if err != nil {
			return Term{}, fmt.Errorf("%q: %w; write it like %s", text, err, f.example)
		}
		return Term{Of: Quantity(q), Strict: sign == "<", Unit: unit, Limit: limit}, nil
	}
	var all []string
	for _, f := range forms {
		all = append(all, f.name)
	}
	return Term{}, fmt.Errorf("%q: %q is not a term of a need; use %s", text, name, strings.Join(all[:len(all)-1], ", ")+" or "+all[len(all)-1])
}

// parseLoss reads 0, a time or a size.
func parseLoss(text string) (Unit, int64, error) {
	if d, err := time.ParseDuration(text); err == nil {
		if d < 0 {
			return 0, 0, fmt.Errorf("%q is negative", text)
		}
		return Time, int64(d), nil
	}
	size, err := holdfast.ParseSize(text)
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("%q is neither 0 nor a duration nor a size", text)
	case size == 0:
		return Time, 0, nil
	case strings.Trim(text, "0123456789") == "": // a second, or a byte?
		return 0, 0, fmt.Errorf("%q has no unit", text)
	}
	return Bytes, int64(size), nil
}

func parseTime(text string) (Unit, int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, 0, fmt.Errorf("%q is not a duration", text)
	}
	if d <= 0 {
		return 0, 0, fmt.Errorf("%q is not above 0, and every Write takes some time", text)
	}
	return Time, int64(d), nil
}

// parseRate reads records (50000/s, 50k/s, 1.5M/s) or bytes (10MiB/s) a second.
func parseRate(text string) (Unit, int64, error) {
	amount, ok := strings.CutSuffix(text, "/s")
	if !ok {
		return 0, 0, fmt.Errorf("%q does not end with /s", text)
	}
	unit, n, err := Stream, int64(0), error(nil)
	if strings.HasSuffix(amount, "B") {
		var size holdfast.Size
		size, err = holdfast.ParseSize(amount)
		n = int64(size)
	} else {
		unit = Records
		at := slices.IndexFunc(thousands, func(t thousand) bool { return strings.HasSuffix(amount, t.suffix) })
		if n, ok = decimal(strings.TrimSuffix(amount, thousands[at].suffix), thousands[at].factor); !ok {
			err = fmt.Errorf("%q is not a whole number of records, with k for thousands or M for millions", amount)
		}
	}
	if err == nil && n <= 0 {
		err = fmt.Errorf("%q is not above 0", text)
	}
	return unit, n, err
}

// A thousand is a power of 1000 with its suffix.
type thousand struct {
	suffix string
	factor int64
}

// thousands are the suffixes of a number of records.
var thousands = []thousand{{"M", 1e6}, {"k", 1e3}, {"", 1}}

// parseShare reads a percentage with up to two digits after the point.
func parseShare(text string) (Unit, int64, error) {
	number, percent := strings.CutSuffix(text, "%")
	n, ok := decimal(number, 100)
	if !percent || !ok || n == 0 {
		return 0, 0, fmt.Errorf("%q is not a percentage above 0 with at most two digits behind the point", text)
	}
	return Share, n, nil
}

// decimal returns number × factor. The factor is a power of ten. It reports false if the product is
// not whole or more than 10^15, which a float64 holds exactly.
func decimal(number string, factor int64) (int64, bool) {
	whole, fraction, point := strings.Cut(number, ".")
	zeros := len(strconv.FormatInt(factor, 10)) - 1
	if whole == "" || point && fraction == "" || len(fraction) > zeros {
		return 0, false
	}
	digits := whole + fraction + strings.Repeat("0", zeros-len(fraction))
	if strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n <= 1e15
}

// String returns n's text, as [ParseNeed] reads it.
func (n Need) String() string {
	var terms []string
	for _, t := range n {
		terms = append(terms, t.String())
	}
	return strings.Join(terms, ",")
}

// String returns the term's text: p99<10ms.
func (t Term) String() string {
	sign := "<="
	switch {
	case t.Of == Rate:
		sign = ">="
	case t.Strict:
		sign = "<"
	}
	return t.Of.String() + sign + t.Unit.text(t.Limit)
}

// text writes a number of the unit, as ParseNeed reads it.
func (u Unit) text(n int64) string {
	switch u {
	case Bytes:
		return holdfast.Size(n).String()
	case Stream:
		return holdfast.Size(n).String() + "/s"
	case Share:
		return strconv.FormatFloat(float64(n)/100, 'f', -1, 64) + "%"
	case Records:
		return countText(n) + "/s"
	}
	if n == 0 {
		return "0"
	}
	return time.Duration(n).String()
}

// countText writes a number of records as parseRate reads it: 49.9k.
func countText(n int64) string {
	for _, u := range thousands {
		if n < u.factor {
			continue
		}
		text := strconv.FormatInt(n/u.factor, 10)
		if fraction := n % u.factor; fraction > 0 {
			text += "." + strings.TrimRight(strconv.FormatInt(u.factor+fraction, 10)[1:], "0")
		}
		return text + u.suffix
	}
	return strconv.FormatInt(n, 10)
}

// Covers reports whether a policy's own promise is within the need's bounds of loss. It
// ignores syncs and flushes in flight.
func (n Need) Covers(p holdfast.Policy) bool {
	for _, t := range n {
		var b holdfast.Bound
		switch t.Of {
		case Loss:
			b = p.Loss().Power
		case Crash:
			b = p.Loss().Process
		default:
			continue
		}
		limit := b.Time
		if t.Unit == Bytes {
			limit = time.Duration(b.Bytes)
		}
		if !b.None() && (limit == holdfast.Unlimited || int64(limit) > t.Limit) {
			return false
		}
	}
	return true
}

// Records returns the need's rate in records a second, or 0.
func (n Need) Records(recordBytes int64) float64 {
	t, ok := n.Term(Rate)
	switch {
	case !ok:
		return 0
	case t.Unit == Stream:
		return math.Ceil(float64(t.Limit) / float64(recordBytes))
	}
	return float64(t.Limit)
}

// Rarest returns the rarest percentile that the need limits, such as 0.99, or 0.
func (n Need) Rarest() float64 {
	rarest := 0.0
	for _, t := range n {
		rarest = max(rarest, percentiles()[t.Of])
	}
	return rarest
}

// percentiles are the quantiles of Write times that a need can limit.
func percentiles() map[Quantity]float64 {
	return map[Quantity]float64{P50: 0.5, P90: 0.9, P99: 0.99, P999: 0.999}
}
