package study

import "github.com/holdfast-go/holdfast"

// Advice is the study of which policy meets a need: each policy at the rate that
// is needed, where there is one, and each at full speed. The choice names the
// policies; it is one load unless it names more.
func Advice() Sweep {
	return Sweep{
		Name:      "advice",
		Question:  "which policy meets the need and costs least",
		Workloads: adviceWorkloads,
	}
}

func adviceWorkloads(c Choice) []Workload {
	settings := []Setting{{}}
	if c.Rate > 0 {
		settings = []Setting{{Rate: c.Rate}, {}}
	}
	var loads []Workload
	for _, s := range settings {
		for _, size := range or(c.Records, []holdfast.Size{128}) {
			for _, n := range or(c.Writers, []int{1}) {
				for _, p := range or(c.Policies, Policies()) {
					loads = append(loads, Workload{Policy: p, RecordBytes: int64(size), Writers: n, Setting: s})
				}
			}
		}
	}
	return withTwin(loads)
}
