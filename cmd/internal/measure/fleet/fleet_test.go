package fleet

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

var (
	policies = []holdfast.Policy{holdfast.Buffered(4 * holdfast.KiB), holdfast.Buffered(64 * holdfast.KiB), holdfast.Durable(), holdfast.EachDurable(), holdfast.Periodic(time.Second)}
	began    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// host makes up a host: its times are the usual times, multiplied by a factor for its disk and one for
// all else. Every cell has a factor of its own from noise.
func host(name string, disk, memory float64, noise func() float64) Host {
	h := Host{
		Name: name, File: name + ".jsonl", Study: "policy", Program: "holdfast 1", StartedAt: began, Rounds: 6, Mount: "/data", took: time.Minute,
		Machine: []machine.Fact{
			{Name: machine.HostName, Value: name}, {Name: "CPU model", Value: "Fast 9"}, {Name: "CPUs online", Value: "8"}, {Name: "memory", Value: "31.2 GiB"},
			{Name: "file system", Value: "ext4"}, {Name: "mount options", Value: "rw,relatime"}, {Name: "device model", Value: "Disk 1"},
			{Name: "device stack", Value: "sda"}, {Name: "rotational", Value: "no"}, {Name: "write cache", Value: "write through"}, {Name: "kernel", Value: "6.1"},
		},
	}
	for i, p := range policies {
		key := Key{Name: fmt.Sprintf("%v with %d", p, i), Policy: p, Load: figure.Load{RecordBytes: 128, Writers: 1}}
		x := 1e3 * memory * noise()
		if key.part().disk() {
			x = 1e6 * disk * noise()
		}
		s := figure.Summary{Summary: stat.Summary{N: 6, Median: x, Low: x * 0.99, High: x * 1.01, Confidence: 0.95}, Least: x * 0.99, Most: x * 1.01}
		h.Times = append(h.Times, Time{Key: key, Cell: key.Name, Part: key.part(), Record: s})
	}
	return h
}

func quiet() float64 { return 1 }

// set gives a fact another value.
func (h Host) set(name, value string) Host {
	h.Machine = slices.Clone(h.Machine)
	for i := range h.Machine {
		if h.Machine[i].Name == name {
			h.Machine[i].Value = value
		}
	}
	return h
}

// hosts makes up n similar hosts, h1 to hN. Their disks and memories differ by the distribution distributed, their
// cells by less.
func hosts(n int, r *rand.Rand, distributed func(*rand.Rand) float64) []Host {
	all := make([]Host, n)
	for i := range all {
		about := func(by float64) float64 { return math.Exp(by * distributed(r)) }
		all[i] = host(fmt.Sprintf("h%d", i+1), about(0.05), about(0.05), func() float64 { return about(0.02) })
	}
	return all
}

func normal(r *rand.Rand) float64   { return r.NormFloat64() }
func logistic(r *rand.Rand) float64 { u := r.Float64(); return math.Log(u / (1 - u)) }

func words(f Fleet) (all []string) {
	for _, o := range f.Outliers {
		for _, one := range o.Findings {
			all = append(all, fmt.Sprintf("%s: %s", o.Host, one.Word))
		}
	}
	return all
}

// TestLikeHostsGetNoWord makes up fleets of equal hosts: at least 19 of 20 fleets have no finding.
// Fleets of 1,000 hosts are among them, with normal times and with heavier tails.
func TestLikeHostsGetNoWord(t *testing.T) {
	for name, distributed := range map[string]func(*rand.Rand) float64{"normal": normal, "logistic": logistic} {
		for _, size := range []struct{ hosts, fleets int }{{4, 2000}, {12, 1000}, {100, 200}, {1000, 40}} {
			r := rand.New(rand.NewPCG(7, uint64(size.hosts)))
			odd := 0
			for range size.fleets {
				if f := New(hosts(size.hosts, r, distributed), nil, nil, 0.001); len(f.Outliers) > 0 {
					odd++
				}
			}
			t.Logf("%s: %d of %d fleets of %d like hosts have an outlier", name, odd, size.fleets, size.hosts)
			if most := 0.05*float64(size.fleets) + 3*math.Sqrt(0.05*float64(size.fleets)); float64(odd) > most {
				t.Errorf("%s: %d of %d fleets of %d like hosts have an outlier, of at most 5 %%", name, odd, size.fleets, size.hosts)
			}
		}
	}
}

// TestOddHostsAreFound is the converse: it shows how much slower a disk must be if peers differ by 5 %.
func TestOddHostsAreFound(t *testing.T) {
	for _, size := range []struct {
		hosts          int
		slower, faster float64
	}{{4, 20, 1. / 20}, {12, 3, 1. / 3}, {100, 2, 0.5}, {1000, 2, 0.5}} {
		r := rand.New(rand.NewPCG(7, 7))
		all := hosts(size.hosts, r, normal)
		all[1] = host("slow", size.slower, 1, quiet)
		f := New(all, nil, nil, DefaultThreshold)
		if got := words(f); !slices.Equal(got, []string{"slow: slower", "slow: slower"}) {
			t.Errorf("%d hosts, one %vx slower: %v", size.hosts, size.slower, got)
		}
		all[1] = host("liar", size.faster, 1, quiet)
		if got := words(New(all, nil, nil, DefaultThreshold)); !slices.Equal(got, []string{"liar: sync too fast", "liar: sync too fast"}) {
			t.Errorf("%d hosts, one %vx: %v", size.hosts, size.faster, got)
		}
		all[1] = host("busy", 1, size.slower, quiet)
		f = New(all, nil, nil, DefaultThreshold)
		if got := words(f); !slices.Equal(got, []string{"busy: slower"}) || f.Outliers[0].Findings[0].Score.Part != Memory {
			t.Errorf("%d hosts, one with a memory %vx: %v", size.hosts, size.slower, got)
		}
		all[1] = host("fast", 1, size.faster, quiet)
		if got := words(New(all, nil, nil, DefaultThreshold)); len(got) > 0 {
			t.Errorf("a host with a fast memory is no outlier: %v", got)
		}
	}
}

func TestOutlierNamesWhatDiffers(t *testing.T) {
	var all []Host
	for i := range 8 {
		all = append(all, host(fmt.Sprint("h", i), 1, 1, quiet).set("device stack", fmt.Sprintf("loop%d (file /h%d.img on xfs)", i, i)))
	}
	all[3] = host("odd", 10, 1, quiet).set("device stack", "loop9 (file /odd.img on xfs)").set("kernel", "5.4").set("mount options", "rw,sync")
	f := New(all, nil, nil, DefaultThreshold)
	want := []Differs{{"mount options", "rw,sync", "relatime,rw", 7, 7}, {"kernel", "5.4", "6.1", 7, 7}}
	if len(f.Outliers) != 1 || !slices.Equal(f.Outliers[0].Differs, want) {
		t.Fatalf("got %+v, want what differs: %v", f.Outliers, want)
	}
	one := f.Outliers[0].Findings[0]
	if one.Time.Part != Sync || one.Score.Cells != 2 || math.Abs(float64(one.Score.Ratio)-10) > 1e-9 || one.Peers != 1e6 {
		t.Errorf("%+v", one)
	}
	// A host whose own rounds differ much gets no finding by chance.
	for i := range all[3].Times {
		all[3].Times[i].Record.Low = 1
	}
	if got := words(New(all, nil, nil, DefaultThreshold)); len(got) > 0 {
		t.Errorf("its interval reaches to its peers: %v", got)
	}
}

func TestWriteCacheThatDiffers(t *testing.T) {
	var all []Host
	for i := range 8 {
		all = append(all, host(fmt.Sprint("h", i), 1, 1, quiet))
	}
	all[2] = all[2].set("write cache", "write back")
	all[5] = all[5].set("write cache", machine.Unknown)
	f := New(all, nil, nil, DefaultThreshold)
	if got := words(f); !slices.Equal(got, []string{"h2: write cache differs"}) {
		t.Errorf("%v", got)
	}
	for i := range 3 {
		all[i] = all[i].set("write cache", "write back") // 3 of 7 are too many to be odd
	}
	if f = New(all, nil, nil, DefaultThreshold); len(f.Outliers) > 0 || f.Groups[0].Caches["write back"] != 3 {
		t.Errorf("%v, %v", words(f), f.Groups[0].Caches)
	}
}

func TestGroupsAreOfLikeMachines(t *testing.T) {
	var all []Host
	add := func(n int, change func(Host) Host) {
		for range n {
			all = append(all, change(host(fmt.Sprint("h", len(all)), 1, 1, quiet)))
		}
	}
	add(6, func(h Host) Host { return h })
	add(5, func(h Host) Host { return h.set("mount options", "rw,data=journal") })
	add(3, func(h Host) Host { return h.set("mount options", "rw,noatime") }) // too few for a group of their own
	add(1, func(h Host) Host { return h.set("memory", "30.9 GiB") })
	add(1, func(h Host) Host {
		return h.set("mount options", "relatime,rw,addr=10.0.0.7").set("device stack", "sdb (in a dream)")
	})
	add(4, func(h Host) Host { return h.set("memory", "15.4 GiB") })
	add(4, func(h Host) Host { h.Study = "lines"; return h })
	f := New(all, nil, nil, DefaultThreshold)
	var got []string
	for _, g := range f.Groups {
		got = append(got, fmt.Sprintf("%d %s %s %s %v", g.Hosts, g.Class.Study, g.Class.Memory, g.Class.Options, g.Judged()))
	}
	want := []string{
		"10 policy 32 GiB relatime,rw true", "5 policy 32 GiB data=journal,rw true", "4 lines 32 GiB relatime,rw true", "4 policy 16 GiB relatime,rw true",
		"1 policy 32 GiB relatime,rw false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if f.Known() {
		t.Error("a group of one host is not judged, and all is said to be known")
	}
	again := slices.Clone(all)
	slices.Reverse(again)
	a, errA := json.Marshal(f)
	b, errB := json.Marshal(New(again, nil, nil, DefaultThreshold))
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Errorf("the order of the files matters: %v, %v", errA, errB)
	}
}

func TestNewestResultsCount(t *testing.T) {
	old, last := host("a", 9, 1, quiet), host("a", 1, 1, quiet)
	old.File, last.StartedAt = "old.jsonl", began.Add(time.Hour)
	other := host("a", 1, 1, quiet)
	other.Mount = "/other"
	f := New([]Host{old, last, other}, nil, nil, DefaultThreshold)
	want := []Older{{Host: "a", File: "old.jsonl", StartedAt: began, Newer: "a.jsonl"}}
	if len(f.Hosts) != 2 || f.Hosts[0].File != "a.jsonl" || !slices.Equal(f.Older, want) {
		t.Errorf("%+v, %+v", f.Hosts, f.Older)
	}
	last.StartedAt = began.Add(30 * time.Second) // the other took a minute
	if f = New([]Host{old, last}, nil, nil, DefaultThreshold); !f.Older[0].Overlaps {
		t.Error("two hosts have one name, and nothing is said")
	}
	if f = New([]Host{last, last}, nil, nil, DefaultThreshold); f.Older[0].Overlaps {
		t.Error("a file and its copy are said to be of two hosts")
	}
	old = last
	if old.seed = 7; !New([]Host{old, last}, nil, nil, DefaultThreshold).Older[0].Overlaps {
		t.Error("two hosts of one name began in the same second, and nothing is said")
	}
}

func TestExpectedHosts(t *testing.T) {
	var all []Host
	for _, name := range []string{"a.example.org", "b", "c", "d", "e"} {
		all = append(all, host(name, 1, 1, quiet))
	}
	damaged := Silent{Host: "f", File: "f.jsonl", Why: "damaged"}
	f := New(all, []Silent{damaged}, []string{"a", "b.example.org", "c", "d", "f", "g", "g"}, DefaultThreshold)
	if want := []Silent{damaged, {Host: "g", Why: "no results"}}; !slices.Equal(f.Silent, want) || f.Known() {
		t.Errorf("%+v", f.Silent)
	}
	if !slices.Equal(f.Unexpected, []string{"e"}) {
		t.Errorf("unexpected: %v", f.Unexpected)
	}
	damaged.Host = "a.example.org" // which has other results that can be read
	if f = New(all, []Silent{damaged}, nil, DefaultThreshold); len(f.Silent) != 1 || !f.Known() {
		t.Errorf("%+v", f.Silent)
	}
}

func TestDeviceKindHasNoNames(t *testing.T) {
	rotational := "no"
	check := func(model, stack, want string) {
		t.Helper()
		facts := []machine.Fact{{Name: "device model", Value: model}, {Name: "device stack", Value: stack}, {Name: "rotational", Value: rotational}}
		if got := deviceKind(facts); got != want {
			t.Errorf("%q %q: %q, want %q", model, stack, got, want)
		}
	}
	check("Disk 1", "sda", "Disk 1, not rotating")
	check(machine.Unknown, "loop3 (file /a (b)/n3.img on ext4)", "file on ext4, not rotating")
	check(machine.Unknown, "loop3 (file /n3.img)", "file, not rotating")
	check("Disk 1", "dm-0 (LVM thin) on dm-1 (thin pool) on nvme0n1", "Disk 1, LVM thin, thin pool, not rotating")
	rotational = "yes"
	check("Disk 1", "sdvda", "Disk 1, rotating")
	check(machine.Unknown, "vda", "virtual disk")
	check(machine.Unknown, "dm-0 (LVM) on xvdb", "LVM, virtual disk")
	for text, want := range map[string]string{"15.6 GiB": "16 GiB", "12.0 GiB": "16 GiB", "11.0 GiB": "8 GiB", "unknown": "", "": ""} {
		if got := memoryClass(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestFarPeersAreNoOverflow: four hosts with extremely different times can be written as JSON.
func TestFarPeersAreNoOverflow(t *testing.T) {
	all := []Host{host("a", 1e-60, 1, quiet), host("b", 1, 1, quiet), host("c", 1e60, 1, quiet), host("d", 1e120, 1, quiet)}
	f := New(all, nil, nil, DefaultThreshold)
	if text, err := json.Marshal(f); err != nil || len(f.Outliers) > 0 || strings.Contains(string(text), "Inf") {
		t.Errorf("%v, %v", err, words(f))
	}
}
