package result

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
)

// realLines are those of the run that the documents show, and of one of version 1.
func realLines(t testing.TB) (lines []string) {
	f, err := os.Open(filepath.Join("..", "..", "..", "docs", "measured", "policy.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	old, err2 := os.ReadFile(filepath.Join("testdata", "version1.jsonl"))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text) + string(old)) {
		if strings.HasPrefix(line, trialBegins) {
			lines = append(lines, line)
		}
	}
	return lines
}

// fullTrial has every field, each with another value.
func fullTrial() Trial {
	var t Trial
	t.IO, t.SystemCalls, t.Before = new(IO), new(SystemCalls), new(Residency)
	t.Activity = new(machine.Activity)
	n := int64(0)
	var fill func(reflect.Value)
	fill = func(v reflect.Value) {
		n++
		switch v.Kind() {
		case reflect.Pointer:
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			fill(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() && v.Type() != reflect.TypeFor[Latency]() {
					fill(v.Field(i))
				}
			}
		case reflect.Int, reflect.Int64:
			v.SetInt(n)
		case reflect.Float64:
			v.SetFloat(float64(n) / 8)
		case reflect.String:
			v.SetString("text of one")
		case reflect.Bool:
			v.SetBool(true)
		}
	}
	fill(reflect.ValueOf(&t).Elem())
	t.Turns, t.Values = []time.Duration{3, 1, 2}, map[string]float64{"a_ns": 1.5, "b": -2e-7, "c": 3e25}
	for _, l := range []*Latency{&t.Latency, t.Service, t.Replayed} {
		h := NewHistogram()
		for i := range 100 {
			Record(h, time.Duration(i*i*i)*time.Microsecond)
		}
		*l, _ = NewLatency(h, func(int64, float64) bool { return true })
	}
	return t
}

func newDecoder() *decoder { return &decoder{texts: map[string]string{}} }

// agrees reports whether the decoder takes a line. If it does, it says what encoding/json says.
func agrees(t *testing.T, d *decoder, line string) bool {
	t.Helper()
	var fast, right Trial
	if !d.trial([]byte(line), &fast) {
		return false
	}
	if err := json.Unmarshal([]byte(line), &right); err != nil {
		t.Fatalf("%q is taken, and encoding/json says %v", line, err)
	}
	if err := right.check(); err != nil {
		t.Fatalf("%q is taken, and should be refused: %v", line, err)
	}
	if !reflect.DeepEqual(fast, right) {
		t.Fatalf("%q is\n%+v, and should be\n%+v", line, fast, right)
	}
	return true
}

// TestTrialsAreDecodedFast: a line that the decoder does not take is right, and slow.
func TestTrialsAreDecodedFast(t *testing.T) {
	text, err := json.Marshal(trial{kindTrial, fullTrial()})
	if err != nil {
		t.Fatal(err)
	}
	d := newDecoder()
	for _, line := range append(realLines(t), string(text)+"\n") {
		if !agrees(t, d, line) {
			t.Errorf("%s is not decoded fast", line)
		}
	}
}

func FuzzTrial(f *testing.F) {
	text, err := json.Marshal(trial{kindTrial, fullTrial()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text) + "\n")
	for _, members := range []string{`"round":01`, `"values":{"a":1.}`, `"values":{"a":.5}`, `"values":{}`, `"values":{"a":1,}`, `"values":{"a":1,"a":2}`, `"turns_ns":[]`, `"turns_ns":[1,2]`,
		`"cell":"\u0041"`, `"cell":"é"`, `"io":{}`, `"io":null`, `"io":{"read_calls":1},"io":{"write_calls":2}`, `"round":1.0`, `"round":1e2`, `"steady":true`, `"kind":"end"`, `"Round":7`,
		`"latency":{"count":1,"max_ns":1,"hdr_histogram":"AAAA"}`, `"latency":{"count":0,"max_ns":1}`, `"activity":{"load_1min":-0.0}`, `"records":-1`, `"round":1 `, `"values":{"a":0x1}`, `"values":{"a":1e999}`} {
		f.Add(trialBegins + `"records":1,"elapsed_ns":1,` + members + "}\n")
	}
	f.Fuzz(func(t *testing.T, line string) {
		var merged Trial
		d := newDecoder()
		d.merges = true
		if taken := agrees(t, newDecoder(), line); d.trial([]byte(line), &merged) && !taken {
			t.Fatalf("%q is taken only where latencies are merged", line)
		}
	})
}

// TestUnpackedIsDecoded compares with the library, which is three times as slow and more.
func TestUnpackedIsDecoded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var u unpacker
	for n := range 100 {
		h := NewHistogram()
		for range 1 + n*n {
			Record(h, time.Duration(1+r.Int64N(1<<r.IntN(38))))
		}
		text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		stored, packed := pack(h)
		right, err := hdrhistogram.Decode(text)
		if again, err2 := hdrhistogram.Decode(stored); errors.Join(err, err2) != nil || !packed || !reflect.DeepEqual(again, right) {
			t.Fatalf("%s is not what was packed: %v", stored, err)
		}
		for _, text := range [][]byte{text, stored} {
			bins, ok := u.unpack(text, nil)
			if !ok {
				t.Fatalf("%s is not unpacked", text)
			}
			all, s := NewHistogram(), sum{}
			s.add(bins)
			if s.addTo(all); !reflect.DeepEqual(all.Export(), h.Export()) || meanOf(bins) != h.Mean() {
				t.Fatalf("%s: mean %v, want %v", text, meanOf(bins), h.Mean())
			}
		}
		if n%2 > 0 {
			text = stored
		}
		for range 20 {
			broken := bytes.Clone(text)
			broken[r.IntN(len(broken))] ^= 1 << r.IntN(7)
			if _, ok := u.unpack(broken, nil); ok {
				if _, err := hdrhistogram.Decode(broken); err != nil {
					t.Fatalf("%s is taken, and the library says %v", broken, err)
				}
			}
		}
	}
}

func TestHugeCountsArePackedByTheLibrary(t *testing.T) {
	for n, want := range map[int64]bool{mostCount: true, mostCount + 1: false} {
		h := NewHistogram()
		if err := h.RecordValues(5, n); err != nil {
			t.Fatal(err)
		}
		if _, ok := pack(h); ok != want {
			t.Errorf("a count of %d is packed: %v", n, ok)
		}
		l, err := NewLatency(h, func(int64, float64) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		if again, err := l.histogram(); err != nil || again.TotalCount() != n {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// longRun is the text of a run of so many rounds of three cells, one of which runs in every second.
func longRun(t testing.TB, rounds int) string {
	var b strings.Builder
	b.WriteString(`{"kind":"header","schema_version":3,"cells":[{"name":"a"},{"name":"b"},{"name":"c","every":2}]}` + "\n")
	r := rand.New(rand.NewPCG(3, 4))
	e := json.NewEncoder(&b)
	var known [16]Latency // to encode one takes longer than all else
	for i := range known {
		h := NewHistogram()
		for range 100 {
			Record(h, time.Duration(r.ExpFloat64()*1e5))
		}
		known[i], _ = NewLatency(h, func(int64, float64) bool { return true })
	}
	one := fullTrial()
	one.SystemCalls, one.Before, one.Values, one.Samples = nil, nil, nil, nil
	for one.Round = range rounds {
		for i, name := range []string{"a", "b", "c"} {
			if !(Cell{Every: 2 * (i / 2)}).RunsIn(one.Round) {
				continue
			}
			for _, l := range []*Latency{&one.Latency, one.Service, one.Replayed} {
				*l = known[r.IntN(len(known))]
			}
			one.Cell, one.Position = name, i+1
			if err := e.Encode(trial{kindTrial, one}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.String()
}

// BenchmarkReadMerged says how many bytes of a long run are read a second.
func BenchmarkReadMerged(b *testing.B) {
	text := longRun(b, 4*trialsApart)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := ReadMerged(strings.NewReader(text), MostTrials); err != nil {
			b.Fatal(err)
		}
	}
}

func TestMergedIsTheSame(t *testing.T) {
	text := longRun(t, trialsApart)
	text = text[:strings.LastIndex(text[:len(text)-1], "\n")+1] // the last round is not whole
	whole, err := Read(strings.NewReader(text))
	merged, err2 := ReadMerged(strings.NewReader(text), MostTrials)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for _, cell := range []string{"a", "b", "c"} {
		want, got := whole.Rounded(cell), merged.Rounded(cell)
		if len(want) != len(got) || len(got) < trialsApart/2-2 {
			t.Fatalf("%d trials of %s, want %d", len(got), cell, len(want))
		}
		for _, of := range []func(*Trial) *Latency{
			func(t *Trial) *Latency { return &t.Latency }, func(t *Trial) *Latency { return t.Service }, func(t *Trial) *Latency { return t.Replayed },
		} {
			a, err := Pool(want, of)
			b, err2 := Pool(got, of)
			if err := errors.Join(err, err2); err != nil || !reflect.DeepEqual(a.Export(), b.Export()) {
				t.Fatalf("the pool of %s differs: %v", cell, err)
			}
			if _, err := Pool(got[1:], of); err != nil { // the first is one of those apart
				t.Errorf("%v", err)
			}
			if _, err := Pool(got[:len(got)-1], of); err == nil {
				t.Error("a part of what was merged is pooled")
			}
			step := 1
			if testing.Short() {
				step = 16 // under the race detector a mean takes a millisecond
			}
			for i := 0; i < len(want); i += step {
				if a, b := of(want[i]), of(got[i]); a.Mean() != b.Mean() || a.P99 != b.P99 || a.Count != b.Count {
					t.Fatalf("trial %d of %s: %+v, want %+v", i, cell, b, a)
				}
			}
		}
	}
	if err := Write(io.Discard, merged); err == nil {
		t.Error("a run without its histograms is written")
	}
}

func TestMergedRoundCannotComeAgain(t *testing.T) {
	text := longRun(t, trialsApart)
	lines := strings.SplitAfter(text, "\n")
	again := lines[len(lines)-10]
	text += again + lines[len(lines)-2]
	_, err := ReadMerged(strings.NewReader(text), MostTrials)
	var format *FormatError
	if !errors.As(err, &format) || format.Line != len(lines)+1 || !strings.Contains(err.Error(), "again") {
		t.Errorf("%v, want line %d", err, len(lines)+1)
	}
}

// TestTrialTakesLittle: a report of the most trials has less than 1 GiB.
func TestTrialTakesLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("it counts what a decoder without the race detector allocates")
	}
	text := longRun(t, 4*trialsApart)
	n := strings.Count(text, "\n") - 1
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	run, err := ReadMerged(strings.NewReader(text), MostTrials)
	if err != nil || len(run.Trials) != n {
		t.Fatalf("%d trials, %v", len(run.Trials), err)
	}
	runtime.ReadMemStats(&after)
	allocations := float64(after.Mallocs-before.Mallocs) / float64(n)
	runtime.GC()
	runtime.ReadMemStats(&after)
	bytes := float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
	t.Logf("%.1f allocations and %.0f bytes a trial", allocations, bytes)
	if allocations > 16 || bytes > 1200 {
		t.Errorf("%.1f allocations and %.0f bytes a trial, of which all have three distributions and a full activity", allocations, bytes)
	}
	runtime.KeepAlive(run)
	runtime.KeepAlive(text)
}
