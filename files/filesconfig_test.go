//go:build go1.25

package files

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// yamlOf returns the function that a package for YAML would call UnmarshalYAML
// with, for a document with these values. JSON has the same names; what no field has goes
// where ",inline" is.
func yamlOf(values map[string]any) func(any) error {
	return func(to any) error {
		text, err := json.Marshal(values)
		if err != nil {
			return err
		}
		o := to.(*optionsText)
		o.Unknown = unknown(values, reflect.TypeFor[optionsText]())
		if retry, ok := values["retry"].(map[string]any); ok {
			o.Retry.Unknown = unknown(retry, reflect.TypeFor[retryText]())
		}
		return json.Unmarshal(text, to)
	}
}

func unknown(values map[string]any, of reflect.Type) map[string]any {
	rest := maps.Clone(values)
	for i := range of.NumField() {
		delete(rest, of.Field(i).Tag.Get("yaml"))
	}
	return rest
}

var fullOptions = Options{
	Policy: holdfast.Policy{Buffer: 64 * holdfast.KiB, Sync: holdfast.SyncEvery(time.Second)}, Workers: 3, Handles: 200, Memory: 16 * holdfast.MiB, MkdirAll: true, Perm: 0o640, Lines: true,
	Retry: Retry{Attempts: 7, Base: 50 * time.Millisecond, Cap: 2 * time.Second}, Batch: 100,
}

func fullMap() map[string]any {
	return map[string]any{
		"policy": "buffer=64KiB,sync=1s", "workers": 3, "handles": uint64(200), "memory": "16MiB", "mkdir_all": true, "perm": "0640", "lines": true, "batch": 100,
		"retry": map[string]any{"attempts": 7, "base": "50ms", "cap": "2s"},
	}
}

func TestFilesOptionsAreReadFromJSONAndYAML(t *testing.T) {
	check := func(from string, got Options, err error) {
		t.Helper()
		if err != nil || got != fullOptions {
			t.Errorf("%s: %+v, %v", from, got, err)
		}
	}
	text, err := json.Marshal(fullMap())
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON, fromYAML Options
	err = json.Unmarshal(text, &fromJSON)
	check("JSON", fromJSON, err)
	err = fromYAML.UnmarshalYAML(yamlOf(fullMap()))
	check("YAML", fromYAML, err)
}

func TestWhatIsLeftOutStays(t *testing.T) {
	check := func(from string, want Options, read func(*Options) error) {
		t.Helper()
		got := fullOptions
		if err := read(&got); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", from, got, err, want)
		}
	}
	want := fullOptions
	want.Workers, want.Retry.Attempts = 9, 2
	check("JSON", want, func(o *Options) error {
		return json.Unmarshal([]byte(`{"workers": 9, "retry": {"attempts": 2}}`), o)
	})
	check("YAML", want, func(o *Options) error {
		return o.UnmarshalYAML(yamlOf(map[string]any{"workers": 9, "retry": map[string]any{"attempts": 2}}))
	})
	check("null", fullOptions, func(o *Options) error {
		return errors.Join(json.Unmarshal([]byte("null"), o), o.UnmarshalJSON([]byte("null")), o.UnmarshalYAML(yamlOf(nil)))
	})
}

// TestWrongOptionIsRefused: the words and a hint are in the error, and the options stay
// what they were.
func TestWrongOptionIsRefused(t *testing.T) {
	check := func(text string, words ...string) {
		t.Helper()
		fromJSON, fromYAML := fullOptions, fullOptions
		errs := []error{fromJSON.UnmarshalJSON([]byte(text))}
		var values map[string]any
		if json.Unmarshal([]byte(text), &values) == nil {
			errs = append(errs, fromYAML.UnmarshalYAML(yamlOf(values)))
		}
		for _, err := range errs {
			if err == nil {
				t.Errorf("%.60s is taken", text)
				continue
			}
			for _, word := range append(words, "files: ", "; ") {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%.60s: %q does not say %q", text, err, word)
				}
			}
		}
		if fromJSON != fullOptions || fromYAML != fullOptions {
			t.Errorf("%.60s: the options became %+v and %+v", text, fromJSON, fromYAML)
		}
	}
	check(`{"handels":4}`, `"handels"`, "handles")
	check(`{"":4}`, `""`)
	check(`{"retry":{"atempts":4}}`, `"atempts"`, "attempts")
	for _, wrong := range []string{`"4"`, `2.5`, `9223372036854775808`, `1e400`, `true`, `[1]`, `{"a":1}`} {
		check(`{"workers":`+wrong+`}`, "workers")
		check(`{"handles":`+wrong+`}`, "handles")
		check(`{"retry":{"attempts":`+wrong+`}}`, "attempts")
	}
	check(`{"workers":-1}`, "workers=-1")
	check(`{"workers":2147483647}`, "2147483647")
	check(`{"memory":"64 parsecs"}`, `"64 parsecs"`)
	check(`{"memory":"2TiB"}`, "2TiB")
	check(`{"memory":64}`, "memory")
	check(`{"mkdir_all":"true"}`, "mkdir_all")
	check(`{"mkdir_all":1}`, "mkdir_all")
	for _, perm := range []string{"", "0", "rw-r--r--", "0999", "010000", "-644", "0o644", "0644 "} {
		check(`{"perm":"`+perm+`"}`, "perm", `"`+perm+`"`)
	}
	check(`{"perm":644}`, "perm")
	check(`{"retry":{"base":"soon"}}`, "retry", `"soon"`)
	check(`{"retry":{"cap":"-1s"}}`, "retry.cap", "-1s")
	check(`{"retry":{"cap":100}}`, "cap")
	check(`{"retry":{"base":"3s"}}`, "3s", "retry.cap=")
	check(`{"retry":3}`, "retry")
	check(`{"policy":64}`, "policy")
	check(`{"policy":"buffer=64KiB,snyc=1s"}`, "snyc")
	check(`{"policy":"flush=1ns"}`, "1ns")

	for _, text := range []string{``, `{`, `{"workers":1}{}`, `{"workers":01}`, `[]`, `"policy"`, `7`,
		strings.Repeat(`{"retry":`, 1e6), strings.Repeat("[", 20000) + strings.Repeat("]", 20000)} {
		check(text, "options")
	}
}

func TestErrorOfTheYAMLPackageIsKept(t *testing.T) {
	bad, o := errors.New("line 3: tab"), fullOptions
	if err := o.UnmarshalYAML(func(any) error { return bad }); !errors.Is(err, bad) || o != fullOptions {
		t.Errorf("%v, %+v", err, o)
	}
}

func TestMarshalledOptionsLeaveTheDefaultsOut(t *testing.T) {
	check := func(o Options, want string) {
		t.Helper()
		if got, err := json.Marshal(o); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	check(Options{}, `{"policy":"buffer=0,sync=never"}`)
	check(fullOptions, `{"policy":"buffer=64KiB,sync=1s","workers":3,"handles":200,"memory":"16MiB","mkdir_all":true,"perm":"0640","lines":true,`+
		`"retry":{"attempts":7,"base":"50ms","cap":"2s"},"batch":100}`)
	check(Options{Perm: 0o1 | fs.ModeSetuid, Retry: Retry{Cap: time.Hour}}, `{"policy":"buffer=0,sync=never","perm":"4001","retry":{"cap":"1h0m0s"}}`)
	if text, err := json.Marshal(Options{Workers: -1}); err == nil {
		t.Errorf("options that are not valid became %s", text)
	}
}

// randomOptions returns any options; half of them are not valid.
func randomOptions(r *rand.Rand) (o Options) {
	some := func(set func()) {
		if r.IntN(2) == 0 {
			set()
		}
	}
	some(func() {
		o.Policy = holdfast.Policy{Buffer: holdfast.Size(r.Int64N(int64(holdfast.MiB))), Sync: holdfast.SyncEvery(time.Duration(r.Int64N(1e12) - 3))}
	})
	some(func() { o.Workers = r.IntN(maxWorkers+10) - 5 })
	some(func() { o.Handles = r.IntN(2000) })
	some(func() { o.Memory = holdfast.Size(r.Int64N(int64(4 * holdfast.MiB))) })
	some(func() { o.MkdirAll = true })
	some(func() { o.Perm = fs.FileMode(r.Uint32()) & (permBits | fs.FileMode(r.IntN(20)/19)<<31) })
	some(func() {
		o.Retry = Retry{Attempts: r.IntN(20), Base: time.Duration(r.Int64N(1e9)), Cap: time.Duration(r.Int64N(1e10))}
	})
	return o
}

func TestValidOptionsSurviveJSON(t *testing.T) {
	r, valid := rand.New(rand.NewPCG(1, 2)), 0
	for range 5000 {
		o := randomOptions(r)
		text, err := json.Marshal(o)
		if (err == nil) != (o.Validate() == nil) {
			t.Fatalf("%+v: Marshal says %v, Validate %v", o, err, o.Validate())
		}
		if err != nil {
			continue
		}
		valid++
		var got Options
		if err := json.Unmarshal(text, &got); err != nil || got != o {
			t.Fatalf("%+v became %s, %v, and that %+v", o, text, err, got)
		}
	}
	if valid < 500 {
		t.Errorf("only %d of the options were valid", valid)
	}
}

func FuzzFilesOptions(f *testing.F) {
	f.Add([]byte(`{"policy":"buffer=64KiB,sync=1s","workers":3,"handles":200,"memory":"16MiB","mkdir_all":true,"perm":"0640","retry":{"attempts":7,"base":"50ms","cap":"2s"}}`))
	f.Add([]byte(`{"memory":"1MB","retry":{"cap":"1h"}}`))
	f.Add([]byte(`{"workers":1,"workers":2}`))
	f.Add([]byte(`{"perm":"04755","handles":-0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := fullOptions
		if err := o.UnmarshalJSON(data); err != nil && o != fullOptions {
			t.Fatalf("%v changed the options to %+v", err, o)
		}
		var fromJSON Options
		if fromJSON.UnmarshalJSON(data) != nil {
			return
		}
		text, err := fromJSON.MarshalJSON()
		if err != nil {
			t.Fatalf("%s gave %+v, which is not valid: %v", data, fromJSON, err)
		}
		var again Options
		if err := again.UnmarshalJSON(text); err != nil || again != fromJSON {
			t.Fatalf("%+v became %s, and that %+v, %v", fromJSON, text, again, err)
		}
	})
}
