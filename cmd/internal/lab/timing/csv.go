package timing

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// A Layout is a form of CSV.
type Layout int

// The layouts. All but Whole are the published repetition's, to the byte.
const (
	// Averages is the layout that the script of the copies writes. Each buffer has a row, with the quotients of
	// bc(1) -l: 20 decimals, cut off, and no zero before the point.
	Averages Layout = iota

	// Sizes has the size of the file in MiB before it, and the shortest decimals.
	Sizes

	// Named has the file system's name at the beginning of each row, without a heading,
	// and the shortest decimals.
	Named

	// Script is the layout that the script of the writes writes: another head, and four decimals by
	// bc.
	Script

	// Whole is ours, and has all that a row has.
	Whole
)

const mib = 1 << 20

const timesHead = "Elapsed Time (s),Total CPU Time (s),User CPU Time (s),System CPU Time (s)"

// Head returns the first line of the layout, without its end.
func (l Layout) Head() string {
	switch l {
	case Sizes:
		return "File Size (MB),Buffer Size," + timesHead
	case Script:
		return "buffer_size,elapsed_time,total_cpu_time,user_cpu_time,system_cpu_time"
	case Whole:
		return "File System,File Size (bytes),Form,Buffer Size," + timesHead + ",Predicted"
	}
	return "Buffer Size," + timesHead
}

// FileName returns the name that the script gives the file of a source's averages.
func FileName(source string) string { return source + "_results.csv" }

// predictedEnd ends the names of files in a published layout whose rows are predicted.
const predictedEnd = "_predicted.csv"

// PredictedName returns the name of the file that has the predicted rows of another. A published
// layout can't say of a row that it was not measured.
func PredictedName(name string) string { return strings.TrimSuffix(name, ".csv") + predictedEnd }

// IsPredictedName reports whether a file of that name has predicted rows.
func IsPredictedName(name string) bool { return strings.HasSuffix(name, predictedEnd) }

// WriteCSV writes the rows under the layout's head. A value that has no column in the layout is
// left out: only Whole has a column for predicted rows.
func WriteCSV(w io.Writer, l Layout, rows []Row) error {
	var b strings.Builder
	b.WriteString(l.Head() + "\n")
	for _, r := range rows {
		b.WriteString(l.line(r) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (l Layout) line(r Row) string {
	fields := []string{strconv.Itoa(r.Buffer)}
	for _, seconds := range []float64{r.Elapsed, r.CPU, r.User, r.System} {
		fields = append(fields, l.number(seconds))
	}
	switch l {
	case Sizes:
		fields = append([]string{decimal(float64(r.FileSize) / mib)}, fields...)
	case Named:
		fields = append([]string{r.FileSystem}, fields...)
	case Whole:
		fields = append([]string{quoted(r.FileSystem), strconv.FormatInt(r.FileSize, 10), quoted(string(r.Form))}, fields...)
		fields = append(fields, strconv.FormatBool(r.Predicted))
	}
	return strings.Join(fields, ",")
}

func quoted(text string) string {
	if strings.ContainsAny(text, ",\"") {
		return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return text
}

func (l Layout) number(seconds float64) string {
	switch l {
	case Averages:
		return quotient(seconds, 20)
	case Script:
		return quotient(seconds, 4)
	}
	return decimal(seconds)
}

// decimal is the shortest that reads as the same number; what is not known is empty.
func decimal(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// quotient formats a division as bc prints it: a fixed number of decimals, truncated, no zero
// before the point, and 0 for nothing.
func quotient(x float64, scale int) string {
	if math.IsNaN(x) {
		return ""
	}
	whole, rest, _ := strings.Cut(decimal(x), ".")
	rest = (rest + strings.Repeat("0", scale))[:scale]
	sign := ""
	if number, negative := strings.CutPrefix(whole, "-"); negative {
		sign, whole = "-", number
	}
	if whole == "0" {
		whole = ""
	}
	if whole == "" && strings.Trim(rest, "0") == "" {
		return "0"
	}
	return sign + whole + "." + rest
}

// ErrHead says that a file begins with the head of no layout.
var ErrHead = errors.New("the first line is not the head of a table of times")

// A RowError says which value of a file is none.
type RowError struct {
	Name  string // the file's
	Line  int    // from 1
	Value string
	Err   error // the expected value
}

func (e *RowError) Error() string {
	return fmt.Sprintf("%s, line %d: %q: %v", e.Name, e.Line, e.Value, e.Err)
}

func (e *RowError) Unwrap() error { return e.Err }

// ReadCSV reads a table of any layout. It finds the layout by the head: rows that begin with a file
// system's name under the head of [Averages] are [Named]. Decimals may begin with their point,
// lines may end with \r\n, and the last with nothing. If the table names no form, its rows are Copy
// or, in [Script], Write; what it does not say is zero. The file's name is for errors: [ErrHead],
// or a *RowError for a value that can't be read.
func ReadCSV(r io.Reader, name string) ([]Row, error) {
	lines := csv.NewReader(r)
	lines.FieldsPerRecord = -1
	head, err := lines.Read()
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l, ok := layoutOf(strings.TrimPrefix(strings.Join(head, ","), "\ufeff"))
	if !ok {
		return nil, fmt.Errorf("%s: %w; it should be %q or alike", name, ErrHead, Averages.Head())
	}
	var rows []Row
	for {
		fields, err := lines.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		row, err := l.read(fields)
		var wrong *RowError
		if errors.As(err, &wrong) {
			wrong.Name = name
			wrong.Line, _ = lines.FieldPos(0)
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
}

func layoutOf(head string) (Layout, bool) {
	for _, l := range []Layout{Averages, Sizes, Script, Whole} {
		if head == l.Head() {
			return l, true
		}
	}
	return 0, false
}

// columns returns the number of columns before the times.
func (l Layout) columns() int { return strings.Count(l.Head(), ",") + 1 }

func (l Layout) read(fields []string) (Row, error) {
	row := Row{Form: Copy}
	if l == Script {
		row.Form = Write
	}
	var err error
	if l == Averages && len(fields) == l.columns()+1 { // Named
		row.FileSystem, fields = fields[0], fields[1:]
	}
	if len(fields) != l.columns() {
		return row, &RowError{Value: strings.Join(fields, ","), Err: fmt.Errorf("%d values, where the head has %d", len(fields), l.columns())}
	}
	switch l {
	case Sizes:
		var size float64
		size, err = number(fields[0])
		row.FileSize, fields = int64(size*mib), fields[1:]
	case Whole:
		last := len(fields) - 1
		row.FileSystem, row.Form, row.Predicted = fields[0], Form(fields[2]), fields[last] == strconv.FormatBool(true)
		row.FileSize, err = strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			err = &RowError{Value: fields[1], Err: errors.New("is not a number of bytes")}
		}
		fields = fields[3:last]
	}
	if err != nil {
		return row, err
	}
	return row, row.readTimes(fields)
}

// readTimes reads the buffer and the four times.
func (r *Row) readTimes(fields []string) (err error) {
	if r.Buffer, err = strconv.Atoi(fields[0]); err != nil || r.Buffer < 1 {
		return &RowError{Value: fields[0], Err: errors.New("is not the size of a buffer in bytes")}
	}
	for i, into := range []*float64{&r.Elapsed, &r.CPU, &r.User, &r.System} {
		if into != &r.Elapsed && fields[i+1] == "" {
			*into = math.NaN() // not known
			continue
		}
		if *into, err = number(fields[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// number reads a decimal, which no time is without.
func number(text string) (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(x >= 0 && x < 1e12) {
		return 0, &RowError{Value: text, Err: errors.New("is not a number such as 12.5 or .0786")}
	}
	return x, nil
}
