package result_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// TestTurnsAddUp sets every number of two turns: it fails if a new one is not added up.
func TestTurnsAddUp(t *testing.T) {
	turn := func(n int64) result.Measurement {
		var m result.Measurement
		busy := time.Duration(n)
		m.IO, m.Activity = new(result.IO), &machine.Activity{CPUBusy: &busy}
		fill(reflect.ValueOf(&m).Elem(), n)
		h := result.NewHistogram()
		result.Record(h, time.Duration(n)*time.Microsecond)
		var err error
		if m.Latency, err = result.NewLatency(h, enough); err != nil {
			t.Fatal(err)
		}
		return m
	}
	all, err := result.Together([]result.Measurement{turn(1), turn(2), turn(4)}, enough)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(all.Turns, []time.Duration{1, 2, 4}) || all.Latency.Count != 3 || all.Latency.Max.Round(time.Microsecond) != 4*time.Microsecond {
		t.Errorf("turns %v, latency %+v", all.Turns, all.Latency)
	}
	if *all.Activity.CPUBusy != 7 || all.Writer.LongestSync != 4 {
		t.Errorf("busy %v, longest sync %v", *all.Activity.CPUBusy, all.Writer.LongestSync)
	}
	want := turn(7)
	want.Turns, want.Latency, want.Activity = all.Turns, all.Latency, all.Activity
	want.Writer.LongestSync, want.Read, want.Work, want.Unserved, want.Behind, want.Oldest = 4, 1, 1, 1, 1, 1 // a sweep's closed loops set no others
	if !reflect.DeepEqual(all, want) {
		t.Errorf("together %+v\nwant %+v", all, want)
	}
}

// fill sets all numbers of a struct, of nested structs and of structs behind pointers.
func fill(v reflect.Value, n int64) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Int64:
		v.SetInt(n)
	}
}
