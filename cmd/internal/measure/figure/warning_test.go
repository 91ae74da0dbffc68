package figure_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// sound is a run of 12 rounds without warnings.
func sound() result.Run {
	twin := cell("again")
	twin.Twin = "a"
	return planted(plant{cell: cell("a"), ms: steps(100, 12)}, plant{cell: twin, ms: steps(100, 12)})
}

// warnings returns the warnings about a sound run after the change.
func warnings(t *testing.T, change func(*result.Run)) []figure.Warning {
	t.Helper()
	run := sound()
	change(&run)
	found := of(t, run).Warnings
	for _, w := range found {
		for _, text := range []string{w.What, w.Cure} {
			if text == "" || unicode.IsUpper([]rune(text)[0]) && !strings.HasPrefix(text, "CPU") || strings.HasSuffix(text, ".") || strings.Contains(text, "%!") {
				t.Errorf("%s: %q is no sentence of ours", w.Code, text)
			}
		}
	}
	return found
}

// checkWarning wants exactly one warning of this code, or none if the code is empty.
func checkWarning(t *testing.T, code string, change func(*result.Run)) figure.Warning {
	t.Helper()
	found := warnings(t, change)
	var codes []string
	for _, w := range found {
		codes = append(codes, w.Code)
	}
	if want := strings.Fields(code); !slices.Equal(codes, want) {
		t.Errorf("warnings %v, want %v", codes, want)
		return figure.Warning{}
	}
	if code == "" {
		return figure.Warning{}
	}
	return found[0]
}

// eachTrial changes every trial of a cell.
func eachTrial(r *result.Run, name string, change func(*result.Trial)) {
	for i := range r.Trials {
		if r.Trials[i].Cell == name {
			change(r.Trials[i])
		}
	}
}

func TestSoundRunHasNoWarning(t *testing.T) {
	checkWarning(t, "", func(*result.Run) {})
}

func TestWarnsOfSamples(t *testing.T) {
	few := func(n int) func(*result.Run) {
		return func(r *result.Run) { r.Trials = r.Trials[:2*n] }
	}
	if w := checkWarning(t, "too-few-rounds", few(9)); w.Cell != nil {
		t.Errorf("of %v, want the run", w.Name)
	}
	checkWarning(t, "", few(10))
	drift := func(r *result.Run) {
		for i := range r.Trials {
			r.Trials[i].Elapsed += time.Duration(r.Trials[i].Round) * time.Millisecond
		}
	}
	if w := checkWarning(t, "drift", drift); w.Name != "a" || w.Cell == nil {
		t.Errorf("of %q, want a", w.Name)
	}
	wide := func(r *result.Run) {
		for i := range r.Trials {
			r.Trials[i].Elapsed += time.Duration(r.Trials[i].Round%2) * 40 * time.Millisecond
		}
	}
	checkWarning(t, "wide-interval", wide)
}

func TestWarnsOfAWidthThatWasNotReached(t *testing.T) {
	reached := func(width float64) func(*result.Run) {
		return func(r *result.Run) { r.Header.Plan.Width, r.End.Width = 0.05, width }
	}
	checkWarning(t, "", reached(0.05))
	w := checkWarning(t, "not-settled", reached(0.051))
	if !strings.Contains(w.What, "±5.1 %") || !strings.Contains(w.What, "±5.0 %") {
		t.Error(w.What)
	}
	checkWarning(t, "", reached(0))
	if w := checkWarning(t, "not-settled", reached(23.7)); !strings.Contains(w.What, "not known to a factor of two") {
		t.Error(w.What)
	}
}

func TestWarnsOfNoise(t *testing.T) {
	slower := func(percent int) func(*result.Run) {
		return func(r *result.Run) {
			eachTrial(r, "again", func(trial *result.Trial) { trial.Elapsed += trial.Elapsed * time.Duration(percent) / 1000 })
		}
	}
	checkWarning(t, "", slower(49))
	checkWarning(t, "noisy", slower(51))
	checkWarning(t, "noise-unknown", func(r *result.Run) { r.Header.Cells[1].Twin = "" })
}

func TestWarnsOfThePlace(t *testing.T) {
	fact := func(name, value string) func(*result.Run) {
		return func(r *result.Run) {
			r.Header.Machine = []machine.Fact{{Name: "device stack", Value: "sda", Source: "/sys"}}
			r.Header.Machine = append([]machine.Fact{{Name: name, Value: value, Source: "asked"}}, r.Header.Machine...)
		}
	}
	checkWarning(t, "in-memory", fact("file system", "tmpfs"))
	checkWarning(t, "", fact("file system", "ext4"))
	checkWarning(t, "stacked-device", fact("device stack", "dm-0 (LVM thin) on sda"))
	checkWarning(t, "", fact("device stack", machine.Unknown))
	checkWarning(t, "virtual-machine", fact("virtualisation", "virtual machine (QEMU)"))
	checkWarning(t, "", fact("virtualisation", "none seen"))
	checkWarning(t, "frequency-scaling", fact("CPU governor", "powersave"))
	checkWarning(t, "frequency-scaling", fact("CPU boost", "on"))
	checkWarning(t, "", fact("CPU governor", "performance"))
	checkWarning(t, "calls-unseen", func(r *result.Run) { r.Header.SystemCallsUnseen = "tracefs is not mounted" })
}

func TestWarnsOfSyncsThatAreTooFast(t *testing.T) {
	write := func(sync holdfast.SyncMode, writers int, p50 time.Duration, service bool) func(*result.Run) {
		return func(r *result.Run) {
			h := result.NewHistogram()
			for range 100 {
				result.Record(h, p50)
			}
			l, err := result.NewLatency(h, stat.Supports)
			if err != nil {
				t.Fatal(err)
			}
			for i := range r.Header.Cells {
				r.Header.Cells[i].Policy.Sync.Mode, r.Header.Cells[i].Writers = sync, writers
				if service {
					r.Header.Cells[i].Rate = 1000
				}
			}
			for i := range r.Trials {
				r.Trials[i].Latency = l
				if service {
					r.Trials[i].Latency, r.Trials[i].Service = result.Latency{}, &l
				}
			}
		}
	}
	// The histogram has times to 1 %.
	if w := checkWarning(t, "fast-sync", write(holdfast.SyncGroup, 1, 49*time.Microsecond, false)); w.Name != "a" {
		t.Errorf("of %q, want a", w.Name)
	}
	checkWarning(t, "fast-sync", write(holdfast.SyncEach, 1, 49*time.Microsecond, false))
	checkWarning(t, "fast-sync", write(holdfast.SyncGroup, 1, 49*time.Microsecond, true))
	checkWarning(t, "", write(holdfast.SyncGroup, 1, 51*time.Microsecond, false))
	checkWarning(t, "", write(holdfast.SyncGroup, 2, 49*time.Microsecond, false))
	checkWarning(t, "", write(holdfast.SyncNever, 1, 49*time.Microsecond, false))
	checkWarning(t, "in-memory", func(r *result.Run) {
		write(holdfast.SyncEach, 1, 49*time.Microsecond, false)(r)
		r.Header.Machine = []machine.Fact{{Name: "file system", Value: "tmpfs"}}
	})

	stage := func(d time.Duration) func(*result.Run) {
		return func(r *result.Run) {
			r.Header.Cells[0].Policy.Sync = holdfast.Sync{Mode: holdfast.SyncClose}
			eachTrial(r, "a", func(trial *result.Trial) { trial.Sync = d })
		}
	}
	checkWarning(t, "fast-sync", stage(49999))
	checkWarning(t, "", stage(50000))
	checkWarning(t, "", stage(0))
}

// active gives every trial of some rounds an activity. Our trials take 100 to 102 ms, and half as much
// CPU time.
func active(r *result.Run, rounds []int, change func(*result.Trial, *machine.Activity)) {
	for i := range r.Trials {
		t := r.Trials[i]
		t.Elapsed, t.User = 100*time.Millisecond, 50*time.Millisecond
		if slices.Contains(rounds, t.Round) {
			t.Activity = &machine.Activity{}
			change(t, t.Activity)
		}
	}
}

func all() []int { return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12} }

func TestWarnsOfABusyMachine(t *testing.T) {
	others := func(rounds []int, d time.Duration) func(*result.Run) {
		return func(r *result.Run) {
			active(r, all(), func(trial *result.Trial, a *machine.Activity) {
				busy := trial.CPU()
				if slices.Contains(rounds, trial.Round) {
					busy += d
				}
				a.CPUBusy = &busy
			})
		}
	}
	// A count of 168 ticks has a standard deviation of 13: four of them are more than 48, and less than
	// 72 of 192.
	checkWarning(t, "", others(all(), 20*time.Millisecond))
	// Two trials a round have 60 ms together, too little to name rounds.
	w := checkWarning(t, "busy", others(all(), 30*time.Millisecond))
	if len(w.Rounds) != 0 || !strings.Contains(w.What, "0.30 CPUs") {
		t.Errorf("%+v", w)
	}
	checkWarning(t, "", others([]int{5}, 100*time.Millisecond))
	w = checkWarning(t, "busy", others([]int{5, 6}, 125*time.Millisecond))
	if !slices.Equal(w.Rounds, []int{5, 6}) || !strings.HasSuffix(w.What, "in rounds 5–6") || !strings.Contains(w.What, "1.25 CPUs") {
		t.Errorf("%+v", w)
	}
	// Other programs can't have used more CPU time than was left.
	on := func(cpus string, do func(*result.Run)) func(*result.Run) {
		return func(r *result.Run) {
			do(r)
			r.Header.Machine = append(r.Header.Machine, machine.Fact{Name: "CPUs online", Value: cpus})
		}
	}
	checkWarning(t, "", on("1", others([]int{5, 6}, 125*time.Millisecond)))
	if w = checkWarning(t, "busy", on("1", others(all(), time.Second))); !strings.Contains(w.What, "0.50 CPUs") {
		t.Errorf("%+v", w)
	}
	// The kernel's work for our own syncs looks like the work of other programs.
	checkWarning(t, "", func(r *result.Run) {
		others(all(), time.Second)(r)
		for i := range r.Header.Cells {
			r.Header.Cells[i].Policy.Sync = holdfast.Sync{Mode: holdfast.SyncGroup}
		}
	})
	checkWarning(t, "", func(r *result.Run) { active(r, all(), func(*result.Trial, *machine.Activity) {}) })
}

func TestWarnsOfWhatTheMachineDidMeanwhile(t *testing.T) {
	in := func(rounds []int, set func(*machine.Activity)) func(*result.Run) {
		return func(r *result.Run) { active(r, rounds, func(_ *result.Trial, a *machine.Activity) { set(a) }) }
	}
	spent := func(d time.Duration, field func(*machine.Activity) **time.Duration) func(*machine.Activity) {
		return func(a *machine.Activity) { *field(a) = &d }
	}
	steal := func(a *machine.Activity) **time.Duration { return &a.CPUSteal }
	checkWarning(t, "", in(all(), spent(10*time.Millisecond, steal)))
	checkWarning(t, "stolen", in(all(), spent(11*time.Millisecond, steal)))
	throttled := func(a *machine.Activity) **time.Duration { return &a.Throttled }
	checkWarning(t, "", in(all(), spent(0, throttled)))
	if w := checkWarning(t, "throttled", in([]int{3}, spent(1, throttled))); !slices.Equal(w.Rounds, []int{3}) {
		t.Errorf("%+v", w)
	}
	memory := func(a *machine.Activity) **time.Duration { return &a.MemoryPressure }
	checkWarning(t, "", in(all(), spent(10*time.Millisecond, memory)))
	checkWarning(t, "memory-short", in(all(), spent(10*time.Millisecond+1, memory)))
	heat := func(n int64) func(*machine.Activity) {
		return func(a *machine.Activity) { a.ThermalThrottles = &n }
	}
	checkWarning(t, "", in(all(), heat(0)))
	if w := checkWarning(t, "hot", in([]int{12}, heat(1))); !slices.Equal(w.Rounds, []int{12}) {
		t.Errorf("%+v", w)
	}
	many := []int{1, 3, 5, 6, 8, 10, 12}
	if w := checkWarning(t, "hot", in(many, heat(1))); !slices.Equal(w.Rounds, many) || !strings.HasSuffix(w.What, "in rounds 1, 3, 5–6, 8, 10 and 1 more") {
		t.Errorf("%+v", w)
	}
}

func TestWarnsOfTheProcess(t *testing.T) {
	jump := func(d time.Duration) func(*result.Run) { return func(r *result.Run) { r.End.ClockJump = d } }
	checkWarning(t, "", jump(0))
	checkWarning(t, "clock-jump", jump(time.Second))
	checkWarning(t, "clock-jump", jump(-time.Second))
	checkWarning(t, "too-few-rounds", func(r *result.Run) { r.End, r.Trials = nil, r.Trials[:2] })

	same := checkWarning(t, "resumed", func(r *result.Run) { r.Resumed = []result.Resumption{{}} })
	other := checkWarning(t, "resumed", func(r *result.Run) {
		r.Header.Machine = []machine.Fact{{Name: "kernel", Value: "6.1"}}
		r.Resumed = []result.Resumption{{Machine: []machine.Fact{{Name: "kernel", Value: "6.2"}}, Program: "holdfast 2"}}
	})
	twice := checkWarning(t, "resumed", func(r *result.Run) { r.Resumed = make([]result.Resumption, 2) })
	if !strings.Contains(same.What, "(once), so") || !strings.Contains(twice.What, "(2 times), so") {
		t.Errorf("%q and %q", same.What, twice.What)
	}
	if strings.Contains(same.What, "not all") || !strings.Contains(other.What, "kernel: 6.1, then 6.2; program: ") {
		t.Errorf("%q and %q", same.What, other.What)
	}
}

func TestWarnsOfOneCell(t *testing.T) {
	w := checkWarning(t, "unserved", func(r *result.Run) { r.Trials[4].Unserved = 20 })
	if w.Name != "a" || !slices.Equal(w.Rounds, []int{3}) || !strings.HasPrefix(w.What, "20 of 12020 records") {
		t.Errorf("%+v", w)
	}
	before := func(r result.Residency) func(*result.Run) {
		return func(run *result.Run) {
			run.Header.Cells[0].Cache = result.TryCold
			eachTrial(run, "a", func(trial *result.Trial) {
				cold := result.Residency{Pages: 8}
				if trial.Before = &cold; trial.Round == 7 {
					trial.Before = &r
				}
			})
		}
	}
	checkWarning(t, "", before(result.Residency{Pages: 8}))
	if w := checkWarning(t, "not-cold", before(result.Residency{Pages: 8, Resident: 1})); !slices.Equal(w.Rounds, []int{7}) {
		t.Errorf("%+v", w)
	}
	checkWarning(t, "not-cold", before(result.Residency{}))
	checkWarning(t, "not-cold", func(r *result.Run) { r.Header.Cells[0].Cache = result.TryCold })

	steady := func(but int) func(*result.Run) {
		return func(r *result.Run) {
			r.Header.Cells[0].Steady = true
			eachTrial(r, "a", func(trial *result.Trial) { trial.Steady = trial.Round != but })
		}
	}
	checkWarning(t, "", steady(0))
	if w := checkWarning(t, "not-steady", steady(4)); !slices.Equal(w.Rounds, []int{4}) {
		t.Errorf("%+v", w)
	}
}
