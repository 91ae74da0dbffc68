package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
)

// fullTrial sets every field, each to another value.
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

const oneCell = `{"kind":"header","schema_version":3,"cells":[{"name":"a"}]}` + "\n"

// TestEveryFieldOfATrialIsReadAsItWasWritten: with all fields set.
func TestEveryFieldOfATrialIsReadAsItWasWritten(t *testing.T) {
	want := fullTrial()
	want.Cell = "a"
	text, err := json.Marshal(trial{kindTrial, want})
	if err != nil {
		t.Fatal(err)
	}
	run, err := Read(strings.NewReader(oneCell + string(text) + "\n"))
	if err != nil || len(run.Trials) != 1 || !reflect.DeepEqual(*run.Trials[0], want) {
		t.Errorf("%+v, %v; want %+v", run.Trials, err, want)
	}
}

// FuzzTrial reads a line behind a header: an accepted line is written, and read again with the same
// result.
func FuzzTrial(f *testing.F) {
	full := fullTrial()
	full.Cell = "a"
	text, err := json.Marshal(trial{kindTrial, full})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text) + "\n")
	for _, members := range []string{`"round":01`, `"values":{"a":1.}`, `"values":{}`, `"values":{"a":1,"a":2}`, `"turns_ns":[]`, `"turns_ns":[1,2]`,
		`"cell":"\u0041"`, `"cell":"é"`, `"io":{}`, `"io":null`, `"io":{"read_calls":1},"io":{"write_calls":2}`, `"round":1.0`, `"steady":true`, `"kind":"end"`, `"Round":7`,
		`"latency":{"count":1,"max_ns":1,"hdr_histogram":"AAAA"}`, `"latency":{"count":0,"max_ns":1}`, `"activity":{"load_1min":-0.0}`, `"records":-1`, `"values":{"a":1e999}`,
		`"samples":` + strings.Repeat("[", 20000)} {
		f.Add(`{"kind":"trial","cell":"a","records":1,"elapsed_ns":1,` + members + "}\n")
	}
	f.Fuzz(func(t *testing.T, line string) {
		run, err := Read(strings.NewReader(oneCell + line))
		if err != nil || run.Torn {
			return
		}
		var first, second bytes.Buffer
		if err := Write(&first, run); err != nil {
			t.Fatalf("%q is read, and not written: %v", line, err)
		}
		again, err := Read(bytes.NewReader(first.Bytes()))
		if err := errors.Join(err, Write(&second, again)); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("%q is written as\n%s, and then as\n%s: %v", line, first.Bytes(), second.Bytes(), err)
		}
	})
}

// FuzzFile reads any bytes: the result is an error or a run, and memory is taken only for the bytes of the
// file, whatever its numbers claim.
func FuzzFile(f *testing.F) {
	full := fullTrial()
	full.Cell = "a"
	text, err := json.Marshal(trial{kindTrial, full})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(oneCell + string(text) + "\n" + `{"kind":"end","state":"complete"}` + "\n"))
	f.Add([]byte(`{"kind":"header","schema_version":3,"cells":[{"name":"a","writers":1000000000}],"plan":{"rounds":1000000000}}` + "\n"))
	f.Add([]byte(oneCell + `{"kind":"resume"}` + "\n" + `{"kind":"control","round":1000000000,"write_ns":1,"fdatasync_ns":1}` + "\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run, err := Read(bytes.NewReader(file))
		runtime.ReadMemStats(&after)
		// A histogram that is looked into has one size, whatever is in it.
		if took, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+(len(run.Trials)+1)<<21+100*len(file)); took > most {
			t.Errorf("%d bytes of memory for a file of %d with %d trials: %v", took, len(file), len(run.Trials), err)
		}
	})
}
