package advise

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// OpenMetrics writes the verdict and the finding of each term in the text format that Prometheus and the textfile
// collector of node_exporter read. Times are in seconds, Prometheus's unit.
func (r Recommendation) OpenMetrics(w io.Writer, program string) error {
	j := r.Shown()
	labels := func(more ...string) string {
		all := append([]string{"need", r.Need.String(), "policy", j.Policy.String(), "record_bytes", strconv.FormatInt(r.Load.RecordBytes, 10), "writers", strconv.Itoa(r.Load.Writers)}, more...)
		if program != "" {
			all = append(all, "program", program)
		}
		var pairs []string
		for i := 0; i < len(all); i += 2 {
			pairs = append(pairs, all[i]+"="+quoted(all[i+1]))
		}
		return "{" + strings.Join(pairs, ",") + "}"
	}
	var b strings.Builder
	family := func(name, help string) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %[1]s gauge\n", name, help)
	}
	is := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	family("holdfast_need", "1 for the verdict on the need: met, not met or not known.")
	for _, v := range []Verdict{Met, NotMet, NotKnown} {
		fmt.Fprintf(&b, "holdfast_need%s %d\n", labels("verdict", string(v)), is(r.Verdict() == v))
	}
	number := func(u Unit, value int64) string {
		switch u {
		case Time:
			return strconv.FormatFloat(time.Duration(value).Seconds(), 'g', -1, 64)
		case Share: // hundredths of a percent
			return strconv.FormatFloat(float64(value)/1e4, 'g', -1, 64)
		case Bytes, Records, Stream:
		}
		return strconv.FormatInt(value, 10)
	}
	names := map[Unit]string{Time: "seconds", Bytes: "bytes", Records: "records_per_second", Stream: "bytes_per_second", Share: "cpu_ratio"}
	for _, unit := range []Unit{Time, Bytes, Records, Stream, Share} {
		for _, kind := range []string{"found", "limit"} {
			headed := false
			for _, f := range j.Findings {
				value := f.Term.Limit
				if kind == "found" {
					value = f.Value
				}
				if f.Unit != unit || value < 0 || kind == "limit" && f.Term.Unit != unit {
					continue
				}
				name := "holdfast_term_" + kind + "_" + names[unit]
				if !headed {
					family(name, map[string]string{"found": "The measured value of a term of the need, at the worse end of its interval.", "limit": "The limit of the term."}[kind])
					headed = true
				}
				fmt.Fprintf(&b, "%s%s %s\n", name, labels("term", f.Term.Of.String()), number(unit, value))
			}
		}
	}
	family("holdfast_measured_timestamp_seconds", "When it was measured.")
	fmt.Fprintf(&b, "holdfast_measured_timestamp_seconds%s %d\n# EOF\n", labels(), r.figures.Run.Header.StartedAt.Unix())
	_, err := io.WriteString(w, b.String())
	return err
}

// quoted is a label's value.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}
