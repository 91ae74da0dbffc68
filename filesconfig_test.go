package holdfast

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// yamlOf returns the function that a package for YAML would call UnmarshalYAML
// with, for a document with these values.
func yamlOf(value any) func(any) error {
	return func(to any) error {
		*to.(*any) = value
		return nil
	}
}

// withAnyKeys turns maps into those that the oldest package for YAML makes.
func withAnyKeys(value any) any {
	values, ok := value.(map[string]any)
	if !ok {
		return value
	}
	other := map[any]any{}
	for k, v := range values {
		other[k] = withAnyKeys(v)
	}
	return other
}

var fullOptions = FilesOptions{
	Policy: Policy{Buffer: 64 * KiB, Sync: Sync(time.Second)}, Workers: 3, Handles: 200, Memory: 16 * MiB, Folders: true, Perm: 0o640,
	Retry: Retry{Attempts: 7, Base: 50 * time.Millisecond, Cap: 2 * time.Second},
}

func fullMap() map[string]any {
	return map[string]any{
		"policy": "buffer=64KiB,sync=1s", "workers": 3, "handles": uint64(200), "memory": "16MiB", "folders": true, "perm": "0640",
		"retry": map[string]any{"attempts": 7.0, "base": "50ms", "cap": "2s"},
	}
}

func TestFilesOptionsAreReadFromMapJSONAndYAML(t *testing.T) {
	check := func(from string, got FilesOptions, err error) {
		t.Helper()
		if err != nil || got != fullOptions {
			t.Errorf("%s: %+v, %v", from, got, err)
		}
	}
	got, err := FilesOptionsOf(fullMap())
	check("map", got, err)

	got, err = FilesOptionsOf(map[string]any{
		"policy": fullOptions.Policy, "workers": int8(3), "handles": json.Number("2e2"), "memory": 16 * MiB, "folders": true,
		"perm": fs.FileMode(0o640), "retry": fullOptions.Retry,
	})
	check("map of Go's types", got, err)

	text, err := json.Marshal(fullMap())
	if err != nil {
		t.Fatal(err)
	}
	got = FilesOptions{}
	check("JSON", got, json.Unmarshal(text, &got))

	for _, value := range []any{fullMap(), withAnyKeys(fullMap())} {
		got = FilesOptions{}
		err := got.UnmarshalYAML(yamlOf(value))
		check("YAML", got, err)
	}
}

func TestWhatIsLeftOutStays(t *testing.T) {
	check := func(from string, want FilesOptions, read func(*FilesOptions) error) {
		t.Helper()
		got := fullOptions
		if err := read(&got); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", from, got, err, want)
		}
	}
	want := fullOptions
	want.Workers, want.Retry.Attempts = 9, 2
	check("JSON", want, func(o *FilesOptions) error {
		return json.Unmarshal([]byte(`{"workers": 9, "retry": {"attempts": 2}}`), o)
	})
	check("YAML", want, func(o *FilesOptions) error {
		return o.UnmarshalYAML(yamlOf(map[any]any{"workers": 9, "retry": map[any]any{"attempts": 2}}))
	})
	check("null", fullOptions, func(o *FilesOptions) error {
		return errors.Join(json.Unmarshal([]byte("null"), o), o.UnmarshalJSON([]byte("null")), o.UnmarshalYAML(yamlOf(nil)))
	})
}

// refuseOption says that a value is refused for an option: its name, its place, the words
// and a hint are in the error, and the options stay what they were.
func refuseOption(t *testing.T, key string, value any, words ...string) {
	t.Helper()
	values := map[string]any{"workers": 2}
	if parent, child, ok := strings.Cut(key, "."); ok {
		values[parent] = map[string]any{"attempts": 3, child: value}
	} else {
		values[key] = value
	}
	parent, child, _ := strings.Cut(key, ".")
	for _, readable := range []any{values, withAnyKeys(values)} {
		o := fullOptions
		err := o.UnmarshalYAML(yamlOf(readable))
		if err == nil {
			t.Errorf("%s: %v is taken", key, value)
			return
		}
		for _, word := range append(words, parent, child, "; ", "files: ") {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q does not say %q", key, err, word)
			}
		}
		if o != fullOptions {
			t.Errorf("%s: after %v the options are %+v", key, err, o)
		}
	}
	if o, err := FilesOptionsOf(values); err == nil || o != (FilesOptions{}) {
		t.Errorf("%s: FilesOptionsOf gave %+v, %v", key, o, err)
	}
}

func TestWrongNumberIsNamedWithItsOptionAndAHint(t *testing.T) {
	self := map[any]any{}
	self["self"] = self
	for _, whole := range []string{"workers", "handles", "memory", "retry.attempts"} {
		refuseOption(t, whole, 2.5, "2.5")
		refuseOption(t, whole, json.Number("2.5"), "2.5")
		refuseOption(t, whole, json.Number("x"), "x")
		refuseOption(t, whole, json.Number("9223372036854775808"), "9223372036854775808", "range")
		refuseOption(t, whole, json.Number("1e400"), "1e400", "range")
		refuseOption(t, whole, uint64(math.MaxUint64), "18446744073709551615", "range")
		refuseOption(t, whole, 1e18, "1e+18", "range")
		refuseOption(t, whole, math.NaN(), "NaN")
		refuseOption(t, whole, math.Inf(-1), "-Inf")
		refuseOption(t, whole, -1, "=-1")
		refuseOption(t, whole, time.Second, "1s")
		refuseOption(t, whole, true, "true")
		refuseOption(t, whole, nil, "null")
		refuseOption(t, whole, "many", `"many"`)
		refuseOption(t, whole, []any{1}, "list")
		refuseOption(t, whole, self, "map")
		refuseOption(t, whole, func() {}, "func()")
		refuseOption(t, whole, &self, "*map")
	}
}

func TestWrongOptionIsNamedWithItsValueAndAHint(t *testing.T) {
	check := func(key string, value any, words ...string) {
		t.Helper()
		refuseOption(t, key, value, words...)
	}
	check("handels", 4, `"handels"`, "handles")
	check("Workers", 4, `"Workers"`)
	check("", 4, `""`)
	check("retry.atempts", 4, `"atempts"`, "attempts")
	check("workers", "4", `"4"`)
	check("workers", math.MaxInt32, "2147483647")
	check("memory", "64 parsecs", `"64 parsecs"`)
	check("memory", "9EiB", `"9EiB"`)
	check("memory", "2TiB", "2TiB")
	check("folders", "true", `"true"`)
	check("folders", 1, "1")
	for _, perm := range []any{"", "0", "rw-r--r--", "0999", "010000", "-644", "0o644", "0644 ", 420, 0o644, 0.5, nil} {
		check("perm", perm, shown(perm))
	}
	check("perm", fs.ModeDir, "020000000000")
	for _, d := range []string{"retry.base", "retry.cap"} {
		check(d, "soon", `"soon"`)
		check(d, "-1s", `"-1s"`)
		check(d, 100, "100")
		check(d, time.Duration(-1), "-1ns")
	}
	check("retry.base", "3s", "3s", "retry.cap=")
	check("retry", 3, "3")
	check("retry", []any{}, "list")
	check("retry", map[any]any{1: 2}, "1")
	check("policy", 64, "64")
	check("policy", "buffer=64KiB,snyc=1s", "snyc")
	check("policy", Policy{FlushEvery: 1}, "1ns")
}

func TestWrongJSONIsRefused(t *testing.T) {
	check := func(text, word string) {
		t.Helper()
		o := fullOptions
		if err := o.UnmarshalJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), word) || !strings.HasPrefix(err.Error(), "files: ") {
			t.Errorf("%.60s: %v, want an error with %q", text, err, word)
		}
		if o != fullOptions {
			t.Errorf("%.60s: the options became %+v", text, o)
		}
	}
	check(``, "JSON")
	check(`{`, "JSON")
	check(`{"workers":1}{}`, "JSON")
	check(`{"workers":01}`, "JSON")
	check(strings.Repeat(`{"retry":`, 1e6), "JSON")
	check(strings.Repeat("[", 20000)+strings.Repeat("]", 20000), "JSON")
	check(strings.Repeat("[", 9000)+strings.Repeat("]", 9000), "a list is not a map")
	check(`[]`, "a list is not a map")
	check(`"policy"`, `"policy" is not a map`)
	check(`7`, "7 is not a map")
	check(`{"workers":1,"workers":1}`, `key "workers" is given twice; `)
	check(`{"workers":1,"\u0077orkers":1}`, `key "workers" is given twice; `)
	check(`{"retry":{"cap":"1s","cap":"2s"}}`, `key "retry.cap" is given twice; `)
	check(`{"x":[{"a":1,"a":1}]}`, "twice")
	check(`{"workers":1.5}`, "workers: 1.5")
	check(`{"workers":99999999999999999999}`, "workers: 99999999999999999999")
	check(`{"perm":644}`, "perm: 644")
}

func TestErrorOfTheYAMLPackageIsKept(t *testing.T) {
	bad, o := errors.New("line 3: tab"), fullOptions
	if err := o.UnmarshalYAML(func(any) error { return bad }); !errors.Is(err, bad) || o != fullOptions {
		t.Errorf("%v, %+v", err, o)
	}
	for _, value := range []any{map[any]any{true: 1}, []any{}, "text", map[int]any{1: 2}} {
		if err := o.UnmarshalYAML(yamlOf(value)); err == nil || o != fullOptions {
			t.Errorf("%v: %v, %+v", value, err, o)
		}
	}
}

func TestMarshalledOptionsLeaveTheDefaultsOut(t *testing.T) {
	check := func(o FilesOptions, want string) {
		t.Helper()
		if got, err := json.Marshal(o); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	check(FilesOptions{}, `{"policy":"buffer=0,sync=never"}`)
	check(fullOptions, `{"policy":"buffer=64KiB,sync=1s","workers":3,"handles":200,"memory":"16MiB","folders":true,"perm":"0640",`+
		`"retry":{"attempts":7,"base":"50ms","cap":"2s"}}`)
	check(FilesOptions{Perm: 0o1 | fs.ModeSetuid, Retry: Retry{Cap: time.Hour}}, `{"policy":"buffer=0,sync=never","perm":"4001","retry":{"cap":"1h0m0s"}}`)
	if text, err := json.Marshal(FilesOptions{Workers: -1}); err == nil {
		t.Errorf("options that are not valid became %s", text)
	}
}

// randomOptions returns any options, half of which are not valid.
func randomOptions(r *rand.Rand) (o FilesOptions) {
	some := func(set func()) {
		if r.IntN(2) == 0 {
			set()
		}
	}
	some(func() { o.Policy = Policy{Buffer: Size(r.Int64N(int64(MiB))), Sync: Sync(r.Int64N(1e12)) - 3} })
	some(func() { o.Workers = r.IntN(maxWorkers+10) - 5 })
	some(func() { o.Handles = r.IntN(2000) })
	some(func() { o.Memory = Size(r.Int64N(int64(4 * MiB))) })
	some(func() { o.Folders = true })
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
		var got FilesOptions
		if err := json.Unmarshal(text, &got); err != nil || got != o {
			t.Fatalf("%+v became %s, %v, and that %+v", o, text, err, got)
		}
	}
	if valid < 500 {
		t.Errorf("only %d of the options were valid", valid)
	}
}

func FuzzFilesOptions(f *testing.F) {
	f.Add([]byte(`{"policy":"buffer=64KiB,sync=1s","workers":3,"handles":200,"memory":"16MiB","folders":true,"perm":"0640","retry":{"attempts":7,"base":"50ms","cap":"2s"}}`))
	f.Add([]byte(`{"memory":1e6,"retry":{"cap":"1h"}}`))
	f.Add([]byte(`{"workers":1,"workers":2}`))
	f.Add([]byte(`{"perm":"04755","handles":-0.0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := fullOptions
		if err := o.UnmarshalJSON(data); err != nil && o != fullOptions {
			t.Fatalf("%v changed the options to %+v", err, o)
		}
		var fromJSON FilesOptions
		err := fromJSON.UnmarshalJSON(data)
		sameFromYAML(t, data, fromJSON, err)
		if err != nil {
			return
		}
		text, err := fromJSON.MarshalJSON()
		if err != nil {
			t.Fatalf("%s gave %+v, which is not valid: %v", data, fromJSON, err)
		}
		var again FilesOptions
		if err := again.UnmarshalJSON(text); err != nil || again != fromJSON {
			t.Fatalf("%+v became %s, and that %+v, %v", fromJSON, text, again, err)
		}
	})
}

// sameFromYAML reads the data as a package for YAML would give it.
func sameFromYAML(t *testing.T, data []byte, want FilesOptions, wantErr error) {
	t.Helper()
	var value any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if json.Unmarshal(data, &value) != nil || d.Decode(&value) != nil {
		return
	}
	var got FilesOptions
	err := got.UnmarshalYAML(yamlOf(withAnyKeys(value)))
	// Only JSON tells whether a key came twice.
	if (err == nil) != (wantErr == nil) && !strings.Contains(wantErr.Error(), "twice") || wantErr == nil && got != want {
		t.Fatalf("%s: from JSON %+v, %v; from YAML %+v, %v", data, want, wantErr, got, err)
	}
}
