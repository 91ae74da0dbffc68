package advise

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// GoLine returns the Go expression that creates a file at path under p.
func GoLine(p holdfast.Policy) string { return "holdfast.Create(path, " + goPolicy(p) + ")" }

// goPolicy writes p as a call of the function that returns it, if there is one.
func goPolicy(p holdfast.Policy) string {
	switch p {
	case holdfast.Unbuffered():
		return "holdfast.Unbuffered()"
	case holdfast.Durable():
		return "holdfast.Durable()"
	case holdfast.EachDurable():
		return "holdfast.EachDurable()"
	case holdfast.Buffered(p.Buffer):
		return "holdfast.Buffered(" + goSize(p.Buffer) + ")"
	case holdfast.Periodic(p.Sync.Every):
		return "holdfast.Periodic(" + goDuration(p.Sync.Every) + ")"
	}
	var fields []string
	if p.Buffer > 0 {
		fields = append(fields, "Buffer: "+goSize(p.Buffer))
	}
	if p.FlushEvery > 0 {
		fields = append(fields, "FlushEvery: "+goDuration(p.FlushEvery))
	}
	if p.FlushBytes > 0 {
		fields = append(fields, "FlushBytes: "+goSize(p.FlushBytes))
	}
	if p.Sync.Mode != holdfast.SyncNever {
		fields = append(fields, "Sync: "+goSync(p.Sync))
	}
	return "holdfast.Policy{" + strings.Join(fields, ", ") + "}"
}

func goSync(s holdfast.Sync) string {
	names := map[holdfast.SyncMode]string{holdfast.SyncClose: "Close", holdfast.SyncGroup: "Group", holdfast.SyncEach: "Each"}
	if name, ok := names[s.Mode]; ok {
		return "holdfast.Sync{Mode: holdfast.Sync" + name + "}"
	}
	if s.Bytes == 0 {
		return "holdfast.SyncEvery(" + goDuration(s.Every) + ")"
	}
	every := ""
	if s.Every > 0 {
		every = "Every: " + goDuration(s.Every) + ", "
	}
	return "holdfast.Sync{Mode: holdfast.SyncPeriodic, " + every + "Bytes: " + goSize(s.Bytes) + "}"
}

func goSize(s holdfast.Size) string {
	for _, u := range []struct {
		name string
		size holdfast.Size
	}{{"GiB", holdfast.GiB}, {"MiB", holdfast.MiB}, {"KiB", holdfast.KiB}} {
		if s%u.size == 0 {
			return fmt.Sprintf("%d * holdfast.%s", s/u.size, u.name)
		}
	}
	return fmt.Sprint(int64(s))
}

func goDuration(d time.Duration) string {
	for _, u := range []struct {
		name string
		unit time.Duration
	}{{"Hour", time.Hour}, {"Minute", time.Minute}, {"Second", time.Second}, {"Millisecond", time.Millisecond}, {"Microsecond", time.Microsecond}, {"Nanosecond", 1}} {
		switch {
		case d == u.unit:
			return "time." + u.name
		case d%u.unit == 0:
			return fmt.Sprintf("%d * time.%s", d/u.unit, u.name)
		}
	}
	return ""
}
