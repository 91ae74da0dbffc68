package result

import (
	"bytes"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// A decoder decodes the lines of trials as this program writes them, some ten times as fast as
// encoding/json. Of any other line, and of each that [Trial.check] refuses, it says so, and
// encoding/json decides what it is. It is for one goroutine.
type decoder struct {
	texts map[string]string // what few lines repeat each other's: one text in memory
	times []time.Duration   // room for lists
	ints  []int64           // and for what pointers lead to
	zero  int64             // many counts of a machine are 0
	unpacker
	merges     bool        // histograms are left as bins
	bins       []bin       // of the trials
	long       []byte      // the last long text
	histograms []histogram // of the line

	line []byte // the rest of it
}

// A histogram is a long text, or nil, that a latency has.
type histogram struct {
	of   *Latency
	text []byte
}

// An object is a struct of the results: its keys in the order in which they are written.
type object struct {
	keys []objectKey
	next map[string]int // places in keys
}

type objectKey struct {
	text   string // with its quotes and the colon
	offset uintptr
	of     reflect.Type
	is     fieldKind
	in     *object // of a struct, or one that a pointer or a list leads to
}

// A fieldKind is how a field is decoded. To ask reflect at each field takes a third of the time.
type fieldKind int

const (
	isOther fieldKind = iota
	isInt             // int64 and durations, which are 64 bits too
	isWord            // int
	isIntPointer
	isFloatPointer
	isBool
	isText
	isLatency
	isFloats
	isTimes
	isStruct
	isStructPointer
)

func kindOf(t reflect.Type) fieldKind {
	switch t {
	case reflect.TypeFor[time.Duration](), reflect.TypeFor[int64]():
		return isInt
	case reflect.TypeFor[int]():
		return isWord
	case reflect.TypeFor[*time.Duration](), reflect.TypeFor[*int64]():
		return isIntPointer
	case reflect.TypeFor[*float64]():
		return isFloatPointer
	case reflect.TypeFor[bool]():
		return isBool
	case reflect.TypeFor[string]():
		return isText
	case reflect.TypeFor[Latency]():
		return isLatency
	case reflect.TypeFor[map[string]float64]():
		return isFloats
	case reflect.TypeFor[[]time.Duration]():
		return isTimes
	}
	switch {
	case t.Kind() == reflect.Struct:
		return isStruct
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		return isStructPointer
	}
	return isOther
}

// trialObject is made for the first file that is read: most commands read none.
var trialObject = sync.OnceValue(func() *object { return newObject(reflect.TypeFor[Trial]()) })

func newObject(of reflect.Type) *object {
	o := &object{next: map[string]int{}}
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() {
			continue
		}
		k := objectKey{text: `"` + name + `":`, of: f.Type, is: kindOf(f.Type)}
		for i := range f.Index {
			k.offset += of.FieldByIndex(f.Index[:i+1]).Offset
		}
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			k.in = newObject(inner)
		}
		o.next[k.text] = len(o.keys)
		o.keys = append(o.keys, k)
	}
	return o
}

const trialBegins = `{"kind":"trial",`

// trial decodes a line with its end. A trial that is not ok may be half decoded.
func (d *decoder) trial(line []byte, t *Trial) (ok bool) {
	rest, begins := bytes.CutPrefix(line, []byte(trialBegins))
	if !begins {
		return false
	}
	d.line, d.histograms = rest, d.histograms[:0]
	if !d.members(trialObject(), unsafe.Pointer(t)) || string(d.line) != "\n" || t.Records <= 0 || t.Elapsed <= 0 {
		return false
	}
	for _, l := range t.latencies() {
		if l != nil && !d.latency(l) {
			return false
		}
	}
	return true
}

// latency looks whether a histogram can be decoded.
func (d *decoder) latency(l *Latency) bool {
	text, n := []byte(l.Histogram), 0
	for _, h := range d.histograms {
		if h.of == l {
			n++
		}
		if h.of == l && h.text != nil {
			text = h.text
		}
	}
	if l.Count == 0 && len(text) == 0 || l.Count <= 0 || n > 1 {
		return l.Count == 0 && len(text) == 0
	}
	begin, ok := len(d.bins), false
	d.bins, ok = d.unpack(text, d.bins)
	bins := d.bins[begin:]
	if !d.merges {
		d.bins = d.bins[:begin]
		return ok
	}
	l.Histogram, l.bins, l.mean = "", len(bins), meanOf(bins)
	return ok && l.mean > 0
}

// char takes a byte that is next.
func (d *decoder) char(c byte) bool {
	if len(d.line) == 0 || d.line[0] != c {
		return false
	}
	d.line = d.line[1:]
	return true
}

// members takes the rest of an object, after its brace.
func (d *decoder) members(o *object, of unsafe.Pointer) bool {
	if d.char('}') {
		return true
	}
	for next := 0; ; next++ {
		for next < len(o.keys) && !bytes.HasPrefix(d.line, []byte(o.keys[next].text)) { // most are in order
			next++
		}
		if next == len(o.keys) {
			end := bytes.IndexByte(d.line, ':')
			at, known := o.next[string(d.line[:end+1])]
			if !known {
				return false
			}
			next = at
		}
		k := &o.keys[next]
		d.line = d.line[len(k.text):]
		if !d.value(k.is, k, unsafe.Add(of, k.offset)) {
			return false
		}
		if !d.char(',') {
			return d.char('}')
		}
	}
}

// value takes a value of the key. A key that comes twice may be refused.
func (d *decoder) value(is fieldKind, k *objectKey, at unsafe.Pointer) (ok bool) {
	switch is {
	case isInt:
		*(*int64)(at), ok = number[int64](d)
	case isWord:
		*(*int)(at), ok = number[int](d)
	case isIntPointer:
		to := (**int64)(at)
		n, whole := number[int64](d)
		*to, ok = d.kept(n), whole && *to == nil
	case isFloatPointer:
		to := (**float64)(at)
		n, whole := d.float()
		*to, ok = &n, whole && *to == nil
	case isBool:
		var text []byte
		for _, word := range []string{"true", "false"} {
			if text, ok = bytes.CutPrefix(d.line, []byte(word)); ok {
				d.line, *(*bool)(at) = text, word == "true"
				return true
			}
		}
	case isText:
		*(*string)(at), ok = d.text()
	case isLatency:
		d.long = nil
		if !d.char('{') || !d.members(k.in, at) {
			return false
		}
		d.histograms = append(d.histograms, histogram{(*Latency)(at), d.long})
		return true
	case isFloats:
		to := (*map[string]float64)(at)
		return *to == nil && d.floats(to)
	case isTimes:
		to := (*[]time.Duration)(at)
		return *to == nil && d.list(to)
	case isStruct:
		return d.char('{') && d.members(k.in, at)
	case isStructPointer:
		if *(*unsafe.Pointer)(at) != nil {
			return false
		}
		one := reflect.New(k.of.Elem())
		*(*unsafe.Pointer)(at) = one.UnsafePointer()
		return d.value(kindOf(k.of.Elem()), k, one.UnsafePointer())
	}
	return ok
}

// kept returns a pointer to n, which must not change. Many share a piece of memory, and all zeros are one.
func (d *decoder) kept(n int64) *int64 {
	if n == 0 {
		return &d.zero
	}
	if len(d.ints) == cap(d.ints) {
		d.ints = make([]int64, 0, 512)
	}
	d.ints = append(d.ints, n)
	return &d.ints[len(d.ints)-1]
}

// number takes a number that is not negative and has no fraction.
func number[T int | int64 | time.Duration](d *decoder) (T, bool) {
	n, i := int64(0), 0
	for i < len(d.line) && '0' <= d.line[i] && d.line[i] <= '9' {
		n = 10*n + int64(d.line[i]-'0')
		i++
	}
	leading := i > 1 && d.line[0] == '0'
	if i == 0 || i > 18 || leading || int64(T(n)) != n || i < len(d.line) && strings.IndexByte(",}]", d.line[i]) < 0 {
		return 0, false
	}
	d.line = d.line[i:]
	return T(n), true
}

func (d *decoder) float() (float64, bool) {
	end := bytes.IndexAny(d.line, ",}")
	if end <= 0 {
		return 0, false
	}
	text := d.line[:end]
	digits := bytes.TrimPrefix(text, []byte("-"))
	if len(digits) == 0 || digits[0] < '0' || digits[0] > '9' || digits[0] == '0' && len(digits) > 1 && digits[1] != '.' && digits[1] != 'e' ||
		bytes.ContainsAny(digits, "xX_pP") || bytes.HasSuffix(digits, []byte(".")) || bytes.Contains(digits, []byte(".e")) {
		return 0, false // nothing that JSON has
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, false
	}
	d.line = d.line[end:]
	return f, true
}

// text takes a text that needs no decoding.
func (d *decoder) text() (string, bool) {
	if !d.char('"') {
		return "", false
	}
	end := bytes.IndexByte(d.line, '"')
	if end < 0 {
		return "", false
	}
	text := d.line[:end]
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			return "", false
		}
	}
	d.line = d.line[end+1:]
	if len(text) > 200 { // a histogram
		if d.long = text; d.merges {
			return "", true
		}
		return string(text), true
	}
	one, known := d.texts[string(text)]
	if !known {
		one = string(text)
		if len(d.texts) < 1000 {
			d.texts[one] = one
		}
	}
	return one, true
}

func (d *decoder) floats(to *map[string]float64) bool {
	*to = map[string]float64{}
	for before := byte('{'); d.char(before); before = ',' {
		name, ok := d.text()
		if !ok || !d.char(':') {
			return false
		}
		if (*to)[name], ok = d.float(); !ok {
			return false
		}
	}
	return len(*to) > 0 && d.char('}')
}

func (d *decoder) list(to *[]time.Duration) bool {
	if !d.char('[') {
		return false
	}
	n := bytes.Count(d.line[:bytes.IndexByte(d.line, ']')+1], []byte(",")) + 1
	if cap(d.times)-len(d.times) < n {
		d.times = make([]time.Duration, 0, max(n, 512))
	}
	begin := len(d.times)
	for {
		one, ok := number[time.Duration](d)
		if !ok {
			return false
		}
		d.times = append(d.times, one)
		if !d.char(',') {
			break
		}
	}
	*to = d.times[begin:len(d.times):len(d.times)]
	return d.char(']')
}

// meanOf is the mean of a histogram.
func meanOf(bins []bin) (mean float64) {
	total := int64(0)
	for _, b := range bins {
		total += b.n
	}
	for _, b := range bins {
		mean += float64(b.n) * float64(valueAt(b.at)) / float64(total)
	}
	return mean
}
