package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
)

// A certainty is one word for the trust that the figures deserve, with its largest causes.
type certainty struct {
	word   string
	causes []string
	more   int // number of causes that are not named
}

// The words of a certainty. Fair is good enough to choose a policy; poor means: measure again.
const (
	good = "good"
	fair = "fair"
	poor = "poor"
)

// mostCauses bounds the causes that are named; the whole text and the page name all.
const mostCauses = 2

// weights is the weight of each kind of warning; with 3 the certainty is poor. Other warnings appear on the page only.
func weights() map[string]int {
	return map[string]int{
		"in-memory": 6, "too-few-rounds": 5, "fast-sync": 4, "noise-unknown": 3, "clock-jump": 3,
		"noisy": 2, "stolen": 2, "busy": 3, "throttled": 2, "memory-short": 2, "hot": 2, "resumed": 2, "not-steady": 2, "not-cold": 2, "unserved": 2,
		"frequency-scaling": 1, "stacked-device": 1, "drift": 1, "virtual-machine": 1, "period-missed": 1, "wide-interval": 1, "not-settled": 1,
	}
}

// much is a noise that makes the certainty poor.
const much = 1.0

// certainty adds up the weights of the warnings.
func (s sheet) certainty() certainty {
	type cause struct {
		text   string
		weight int
	}
	var causes []cause
	seen := map[string]bool{}
	for _, w := range s.Warnings {
		weight := weights()[w.Code]
		if w.Code == "noisy" && float64(s.Noise.Floor) > much {
			weight = 3
		}
		if w.Code == "too-few-rounds" && w.Cell != nil {
			weight = 1 // of one pair
		}
		if weight == 0 || seen[w.Code] {
			continue
		}
		seen[w.Code] = true
		causes = append(causes, cause{s.shortCause(w), weight})
	}
	slices.SortStableFunc(causes, func(a, b cause) int { return cmp.Compare(b.weight, a.weight) })
	c := certainty{word: good}
	for i, one := range causes {
		switch {
		case one.weight >= 3:
			c.word = poor
		case c.word == good && one.weight > 1:
			c.word = fair
		}
		if i < mostCauses {
			c.causes = append(c.causes, one.text)
		} else {
			c.more++
		}
	}
	if s.Run.Mark() != "" && c.word == good {
		c.word = fair
	}
	return c
}

// shortCause is a warning in a few words.
func (s sheet) shortCause(w figure.Warning) string {
	switch w.Code {
	case "in-memory":
		return "the files lie in memory, so a sync reaches no disk"
	case "noisy":
		return fmt.Sprintf("two runs of one policy differed by up to %.0f %%", math.Ceil(100*float64(s.Noise.Floor)))
	case "noise-unknown":
		return "no policy was run twice"
	case "virtual-machine":
		return "a virtual machine, whose host shares CPUs and disk"
	case "frequency-scaling":
		return "the CPUs change their frequency"
	case "stacked-device":
		return "the device is a stack, not a plain disk"
	case "resumed":
		return "the run was resumed"
	case "fast-sync":
		what, _, _ := strings.Cut(w.What, ", ")
		return what + ", which is faster than disks store anything"
	}
	return w.What
}

func (c certainty) String() string {
	text := c.word
	if len(c.causes) > 0 {
		text += ": " + strings.Join(c.causes, "; ")
	}
	if c.more > 0 {
		text += fmt.Sprintf("; and %d more", c.more)
	}
	return text
}
