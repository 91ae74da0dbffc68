package holdfast

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// FilesOptionsOf reads options from a map, as a program may have it from a
// configuration file or from flags. The keys are
//
//	policy   text, such as "buffer=64KiB,sync=1s"
//	workers  a whole number
//	handles  a whole number
//	memory   text, such as "64MiB", or a number of bytes
//	folders  true or false
//	perm     text of octal digits, such as "0644"
//	retry    a map of attempts (a whole number), base and cap (text, such as "100ms")
//
// A key that is left out has its default. A value of the field's own Go type will
// do as well. Any other key, type or value is an error that names it, and the
// options are those of [FilesOptions.Validate].
func FilesOptionsOf(values map[string]any) (FilesOptions, error) {
	var o FilesOptions
	if err := o.read(values); err != nil {
		return FilesOptions{}, err
	}
	return o, nil
}

// UnmarshalJSON reads an object with the keys of [FilesOptionsOf], each at most
// once. As with other structs, what is left out stays as it was, and null changes
// nothing. On an error o is unchanged.
func (o *FilesOptions) UnmarshalJSON(data []byte) error {
	// This also bounds how deep the values lie in each other.
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return fmt.Errorf("files: options are not JSON: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	value, err := jsonValue(d, "")
	if err != nil {
		return err
	}
	return o.read(value)
}

// UnmarshalYAML is called by packages that read YAML, with a function that fills
// what it is pointed to. It takes the keys of [FilesOptionsOf]; what is left out
// stays as it was. On an error o is unchanged.
func (o *FilesOptions) UnmarshalYAML(unmarshal func(any) error) error {
	var value any
	if err := unmarshal(&value); err != nil {
		return err
	}
	return o.read(value)
}

// MarshalJSON writes what UnmarshalJSON reads, without the defaults, or returns the
// error of Validate.
func (o FilesOptions) MarshalJSON() ([]byte, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	type retry struct {
		Attempts int    `json:"attempts,omitempty"`
		Base     string `json:"base,omitempty"`
		Cap      string `json:"cap,omitempty"`
	}
	text := func(set bool, value string) string {
		if !set {
			return ""
		}
		return value
	}
	return json.Marshal(struct {
		Policy  Policy `json:"policy"`
		Workers int    `json:"workers,omitempty"`
		Handles int    `json:"handles,omitempty"`
		Memory  string `json:"memory,omitempty"`
		Folders bool   `json:"folders,omitempty"`
		Perm    string `json:"perm,omitempty"`
		Retry   retry  `json:"retry,omitzero"`
	}{
		o.Policy, o.Workers, o.Handles, text(o.Memory != 0, o.Memory.String()), o.Folders,
		text(o.Perm != 0, fmt.Sprintf("%04o", unixPerm(o.Perm))),
		retry{o.Retry.Attempts, text(o.Retry.Base != 0, o.Retry.Base.String()), text(o.Retry.Cap != 0, o.Retry.Cap.String())},
	})
}

// jsonValue reads the next value. Objects become maps, and so that none of their
// keys is lost one that comes twice is an error.
func jsonValue(d *json.Decoder, key string) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	switch token {
	case json.Delim('{'):
		return jsonObject(d, key)
	case json.Delim('['):
		for d.More() {
			if _, err := jsonValue(d, key); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return []any{}, err
	}
	return token, nil
}

func jsonObject(d *json.Decoder, parent string) (map[string]any, error) {
	values := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("files: %w", err)
		}
		key, _ := token.(string)
		if _, twice := values[key]; twice {
			return nil, fmt.Errorf("files: key %.60q is given twice; give it once", parent+key)
		}
		if values[key], err = jsonValue(d, parent+key+"."); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return values, err
}

// read sets what the map names, or nothing on an error.
func (o *FilesOptions) read(value any) error {
	if value == nil {
		return nil
	}
	changed := *o
	if err := eachKey(value, changed.set); err != nil {
		return fmt.Errorf("files: %w", err)
	}
	if err := changed.Validate(); err != nil {
		return err
	}
	*o = changed
	return nil
}

// eachKey calls set for each key of a map, in their order, so that of several
// errors it is always the same one.
func eachKey(value any, set func(key string, value any) error) error {
	values, ok := value.(map[string]any)
	if other, isAny := value.(map[any]any); isAny {
		values, ok = map[string]any{}, true
		for k, v := range other {
			key, isText := k.(string)
			if !isText {
				return fmt.Errorf("a key is %s; write keys as text", shown(k))
			}
			values[key] = v
		}
	}
	if !ok {
		return fmt.Errorf("%s is not a map; give keys with values", shown(value))
	}
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := set(key, values[key]); err != nil {
			return err
		}
	}
	return nil
}

func (o *FilesOptions) set(key string, value any) (err error) {
	switch key {
	case "policy":
		o.Policy, err = policyOf(value)
	case "workers":
		o.Workers, err = intOf(value)
	case "handles":
		o.Handles, err = intOf(value)
	case "memory":
		o.Memory, err = memoryOf(value)
	case "folders":
		o.Folders, err = boolOf(value)
	case "perm":
		o.Perm, err = permOf(value)
	case "retry":
		o.Retry, err = o.Retry.of(value)
	default:
		return fmt.Errorf("unknown key %.60q; the keys are policy, workers, handles, memory, folders, perm and retry", key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// of returns r with what the map names.
func (r Retry) of(value any) (Retry, error) {
	if other, ok := value.(Retry); ok {
		return other, nil
	}
	err := eachKey(value, func(key string, value any) (err error) {
		switch key {
		case "attempts":
			r.Attempts, err = intOf(value)
		case "base":
			r.Base, err = durationOf(value)
		case "cap":
			r.Cap, err = durationOf(value)
		default:
			return fmt.Errorf("unknown key %.60q; the keys are attempts, base and cap", key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	return r, err
}

func policyOf(value any) (Policy, error) {
	switch v := value.(type) {
	case Policy:
		return v, nil
	case string:
		return ParsePolicy(v)
	}
	return Policy{}, fmt.Errorf("%s is not a policy; write it as text, such as \"buffer=64KiB,sync=1s\"", shown(value))
}

func intOf(value any) (int, error) {
	n, err := wholeNumber(value)
	if err == nil && int64(int(n)) != n {
		err = outOfRange(value)
	}
	return int(n), err
}

func memoryOf(value any) (Size, error) {
	switch v := value.(type) {
	case Size:
		return v, nil
	case string:
		size, err := ParseSize(v)
		if err != nil {
			err = fmt.Errorf("%.60q is not a size; write it like 64MiB, or as a number of bytes", v)
		}
		return size, err
	}
	n, err := wholeNumber(value)
	return Size(n), err
}

func boolOf(value any) (bool, error) {
	v, ok := value.(bool)
	if !ok {
		return false, fmt.Errorf("%s is not true or false; write one of them, without quotes", shown(value))
	}
	return v, nil
}

func durationOf(value any) (time.Duration, error) {
	switch v := value.(type) {
	case time.Duration:
		return v, nil
	case string:
		if d, err := parseDuration(v); err == nil {
			return d, nil
		}
	}
	return 0, fmt.Errorf("%s is not a duration; write it as text, such as \"100ms\"", shown(value))
}

// permOf refuses numbers: 0644 and 644 are told apart by some formats and not by
// others. It refuses 0 because that is the default and not what it says.
func permOf(value any) (fs.FileMode, error) {
	if v, ok := value.(fs.FileMode); ok {
		return v, nil
	}
	text, _ := value.(string)
	bits, err := strconv.ParseUint(text, 8, 16)
	if err != nil || bits == 0 || bits > 0o7777 {
		return 0, fmt.Errorf("%s is not a file's permissions; write octal digits in quotes, such as \"0644\"", shown(value))
	}
	m := fs.FileMode(bits) & fs.ModePerm
	for i, special := range specialBits {
		if bits&(0o1000<<i) != 0 {
			m |= special
		}
	}
	return m, nil
}

// wholeNumber takes every type in which a decoder may give a number.
func wholeNumber(value any) (int64, error) {
	if n, ok := value.(json.Number); ok {
		whole, err := strconv.ParseInt(n.String(), 10, 64)
		if err == nil {
			return whole, nil
		}
		if errors.Is(err, strconv.ErrRange) {
			return 0, outOfRange(value)
		}
		f, err := n.Float64() // such as 1e3
		switch {
		case errors.Is(err, strconv.ErrRange):
			return 0, outOfRange(value)
		case err != nil:
			f = math.NaN()
		}
		return wholeFloat(value, f)
	}
	v := reflect.ValueOf(value)
	switch {
	case !v.IsValid() || v.Type().PkgPath() != "":
	case v.CanInt():
		return v.Int(), nil
	case v.CanUint():
		if v.Uint() > math.MaxInt64 {
			return 0, outOfRange(value)
		}
		return int64(v.Uint()), nil
	case v.CanFloat():
		return wholeFloat(value, v.Float())
	}
	return 0, fmt.Errorf("%s is not a whole number; write one such as 16, without quotes", shown(value))
}

// wholeFloat takes what a float holds exactly.
func wholeFloat(value any, f float64) (int64, error) {
	switch {
	case f != math.Trunc(f) && !math.IsInf(f, 0): // a NaN too
		return 0, fmt.Errorf("%s is not a whole number; write one such as 16", shown(value))
	case math.Abs(f) > 1<<53:
		return 0, outOfRange(value)
	}
	return int64(f), nil
}

func outOfRange(value any) error {
	return fmt.Errorf("%s is out of range; write a smaller number", shown(value))
}

// shown names a value in an error. It looks into nothing that may hold itself.
func shown(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%.60q", v)
	case json.Number:
		return fmt.Sprintf("%.60s", v)
	case []any:
		return "a list"
	case map[string]any, map[any]any:
		return "a map"
	}
	switch v := reflect.ValueOf(value); {
	case v.Kind() == reflect.Bool || v.CanInt() || v.CanUint() || v.CanFloat():
		return fmt.Sprintf("%v", value)
	}
	return fmt.Sprintf("a %T", value)
}
