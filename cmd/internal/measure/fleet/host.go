package fleet

import (
	"math"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A Host is the content of one results file, which is of one host.
type Host struct {
	Name      string    `json:"host"`
	File      string    `json:"file"`
	Mount     string    `json:"mount_point"` // of the file system that was measured
	Group     string    `json:"group"`       // the name of a [Group], given by New
	Study     string    `json:"study"`
	Program   string    `json:"program"`
	StartedAt time.Time `json:"started_at"`
	Rounds    int       `json:"rounds"`
	Missing   string    `json:"not_complete,omitempty"`
	FastSync  string    `json:"fast_sync,omitempty"` // what is doubtful about its syncs, whatever its peers do
	Times     []Time    `json:"times"`
	Scores    []Score   `json:"scores"` // given by New

	Machine []machine.Fact `json:"-"`

	took time.Duration
	seed uint64
}

// A Time is the net time of a record in a cell (see [figure.Net]): until the record is durable if the
// policy syncs, else until it is written. At a rate it is the mean time of a Write.
type Time struct {
	Key `json:"-"`

	Cell   string         `json:"cell"`
	Part   Part           `json:"part"`
	Record figure.Summary `json:"ns_per_record"`
	Ratio  figure.Number  `json:"of_group"` // to the median of the group; absent: it is not positive
}

// A Key identifies a cell on several hosts.
type Key struct {
	Name   string
	Policy holdfast.Policy
	Load   figure.Load
}

// A Part of a host is the resource that limits a cell.
type Part string

const (
	Sync      Part = "sync"      // for policies whose Writes wait for a sync: the time of a sync
	Bandwidth Part = "bandwidth" // for other policies that sync, until all is durable: the disk's throughput
	Memory    Part = "memory"    // for policies that don't sync, and for Writes at a rate: CPU, memory and kernel
	Arms      Part = "arms"      // for a study's arms, which may use any resource
)

func (k Key) part() Part {
	switch {
	case k.Load.Group != "":
		return Arms
	case k.Policy.Sync.Waits():
		return Sync
	case k.Policy.Sync.Mode == holdfast.SyncNever || k.Load.Open():
		return Memory
	}
	return Bandwidth
}

// disk reports whether the part is limited by the disk.
func (p Part) disk() bool { return p == Sync || p == Bandwidth }

// NewHost computes the times of a host, or returns [figure.ErrNoRound]. The run may be one of
// [result.ReadTimes].
func NewHost(file string, run result.Run) (Host, error) {
	times, doubts, err := figure.Times(run)
	if err != nil {
		return Host{}, err
	}
	h := Host{
		Name: NameOf(file, run.Header), File: file, Mount: known(run.Header.Machine, "mount point"), Study: run.Header.Study, Program: run.Header.Program,
		StartedAt: run.Header.StartedAt, Rounds: run.Rounds(), Missing: run.Mark(), Machine: run.Header.Machine, took: run.Spent(), seed: run.Header.Seed,
	}
	if run.End != nil {
		h.took = run.End.Elapsed
	}
	if len(run.Resumed) > 0 { // the clocks started again
		h.StartedAt = run.Resumed[len(run.Resumed)-1].StartedAt
	}
	for _, w := range doubts {
		h.FastSync = w.What
	}
	for _, t := range times {
		key := Key{t.Cell.Name, t.Cell.Policy, t.Load}
		h.Times = append(h.Times, Time{Key: key, Cell: key.Name, Part: key.part(), Record: t.Record, Ratio: figure.Number(math.NaN())})
	}
	return h, nil
}

// NameOf returns the name of the host that made a run. Results without a host's name get the name of
// their file.
func NameOf(file string, h result.Header) string {
	if name := known(h.Machine, machine.HostName); name != "" {
		return name
	}
	name := file[strings.LastIndexAny(file, `/\`)+1:]
	return strings.TrimSuffix(name, ".jsonl")
}

// known returns the value of a fact, or an empty text if it is not known.
func known(facts []machine.Fact, name string) string {
	if value := machine.Get(facts, name).Value; value != machine.Unknown {
		return value
	}
	return ""
}
