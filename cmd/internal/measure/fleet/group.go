package fleet

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// group makes groups of like machines. Mount options make a group of their own only if enough
// hosts have them to be judged by each other. Else these hosts join the largest group of their class,
// and their options count as a difference.
func (f *Fleet) group() {
	members := map[Class][]int{}
	for i, h := range f.Hosts {
		class := h.class()
		members[class] = append(members[class], i)
	}
	largest := map[Class]Class{} // by the class without options
	bare := func(c Class) Class { c.Options = ""; return c }
	for class, of := range members {
		best, ok := largest[bare(class)]
		if n := len(members[best]); !ok || len(of) > n || len(of) == n && class.Options < best.Options {
			largest[bare(class)] = class
		}
	}
	joined := map[Class][]int{}
	for class, of := range members {
		to := class
		if len(of) < stat.LeastPeers {
			to = largest[bare(class)]
		}
		joined[to] = append(joined[to], of...)
	}
	for class, of := range joined {
		slices.Sort(of)
		f.Groups = append(f.Groups, Group{Class: class, Hosts: len(of), members: of})
	}
	slices.SortFunc(f.Groups, func(a, b Group) int {
		return cmp.Or(b.Hosts-a.Hosts, strings.Compare(fmt.Sprint(a.Class), fmt.Sprint(b.Class)))
	})
	for i := range f.Groups {
		g := &f.Groups[i]
		g.Name = strconv.Itoa(i + 1)
		for _, at := range g.members {
			h := &f.Hosts[at]
			h.Group = g.Name
			if h.FastSync != "" {
				g.FastSync = append(g.FastSync, h.Name)
			}
		}
		g.findTypical(f.Hosts)
		g.addCells(f.Hosts)
	}
}

// A typicalFact counts the values that the hosts of a group have for a fact.
type typicalFact struct {
	count map[string]int
	most  string
}

// findTypical counts the values of each fact.
func (g *Group) findTypical(hosts []Host) {
	g.typical = map[string]typicalFact{}
	add := func(name, value string) {
		t, ok := g.typical[name]
		if !ok {
			t.count = map[string]int{}
		}
		t.count[value]++
		if n, m := t.count[value], t.count[t.most]; n > m || n == m && value < t.most {
			t.most = value
		}
		g.typical[name] = t
	}
	for _, at := range g.members {
		for _, fact := range hosts[at].facts() {
			add(fact.Name, fact.Value)
		}
	}
	for value, n := range g.typical[writeCache].count {
		if value != machine.Unknown {
			if g.Caches == nil {
				g.Caches = map[string]int{}
			}
			g.Caches[value] = n
		}
	}
}

const writeCache = "write cache"

// facts returns the facts of a host, and the program that measured it. It leaves out mount options that
// differ on every host.
func (h Host) facts() []machine.Fact {
	facts := append(slices.Clone(h.Machine), machine.Fact{Name: "program", Value: h.Program, Source: "holdfast version"})
	for i := range facts {
		if facts[i].Name == "mount options" && facts[i].Value != machine.Unknown {
			facts[i].Value = mountOptions(facts[i].Value)
		}
	}
	return facts
}

// addCells summarizes each cell over the hosts of the group.
func (g *Group) addCells(hosts []Host) {
	times := map[Key][]float64{}
	var keys []Key
	for _, at := range g.members {
		for _, t := range hosts[at].Times {
			if times[t.Key] == nil {
				keys = append(keys, t.Key)
			}
			if t.Record.Median > 0 { // a net time may be zero
				times[t.Key] = append(times[t.Key], t.Record.Median)
			}
		}
	}
	for _, key := range keys {
		of := times[key]
		quantile := func(p float64) figure.Number { return figure.Number(stat.Quantile(of, p)) }
		g.Cells = append(g.Cells, Cell{Key: key, Cell: key.Name, Part: key.part(), Hosts: len(of), Median: quantile(0.5), Low: quantile(0.05), High: quantile(0.95)})
	}
}

// A Class is the properties that hosts must share to be compared.
type Class struct {
	Study      string `json:"study"`
	Processor  string `json:"cpu_model"`
	CPUs       string `json:"cpus_online"`
	Memory     string `json:"memory"` // the nearest power of two
	FileSystem string `json:"file_system"`
	Device     string `json:"device"`
	Options    string `json:"mount_options"`
}

// class returns the class of a host.
func (h Host) class() Class {
	return Class{
		Study: h.Study, Processor: known(h.Machine, "CPU model"), CPUs: known(h.Machine, "CPUs online"),
		Memory: memoryClass(known(h.Machine, "memory")), FileSystem: known(h.Machine, "file system"),
		Device: deviceKind(h.Machine), Options: mountOptions(known(h.Machine, "mount options")),
	}
}

// memoryClass rounds a size to a power of two: a machine with 16 GiB shows 15.6 GiB or less.
func memoryClass(text string) string {
	number, unit, _ := strings.Cut(text, " ")
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || x <= 0 {
		return ""
	}
	return strconv.FormatFloat(math.Exp2(math.Round(math.Log2(x))), 'f', -1, 64) + " " + unit
}

var (
	// backing is the file of a loop device: its path differs on every host.
	backing = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\(file .* on ([^\s()]+)\)|\(file .*\)`) })
	layers  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\([^()]*\)`) })
	// virtual is the disk of a guest at the end of a stack, by virtio or Xen.
	virtual = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^|[ ,])x?vd[a-z]+$`) })
)

// deviceKind describes a device without its name: its model, whether it rotates or is a virtual disk, and the layers above
// it.
func deviceKind(facts []machine.Fact) string {
	var parts []string
	if model := known(facts, "device model"); model != "" {
		parts = append(parts, model)
	}
	stack := backing().ReplaceAllString(known(facts, "device stack"), "(file on $1)")
	for _, layer := range layers().FindAllString(stack, -1) {
		parts = append(parts, strings.TrimSuffix(strings.Trim(layer, "()"), " on "))
	}
	switch known(facts, "rotational") {
	case "yes":
		kind := "rotating"
		if virtual().MatchString(stack) {
			kind = "virtual disk" // which Linux always calls rotational, whatever the host has
		}
		parts = append(parts, kind)
	case "no":
		parts = append(parts, "not rotating")
	}
	return strings.Join(parts, ", ")
}

// ownOptions are mount options whose values differ on every host.
var ownOptions = []string{"addr", "clientaddr", "mountaddr", "lowerdir", "upperdir", "workdir", "uuid", "subvolid"}

// mountOptions returns mount options in order, without ownOptions.
func mountOptions(text string) string {
	options := strings.Split(text, ",")
	options = slices.DeleteFunc(options, func(option string) bool {
		name, _, _ := strings.Cut(option, "=")
		return slices.Contains(ownOptions, name)
	})
	slices.Sort(options)
	return strings.Join(options, ",")
}
