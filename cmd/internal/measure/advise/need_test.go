package advise_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
)

func TestParseNeed(t *testing.T) {
	check := func(text, canonical string, terms ...advise.Term) {
		t.Helper()
		n, err := advise.ParseNeed(text)
		if err != nil || !slices.Equal(n, terms) || n.String() != canonical {
			t.Errorf("%q: %+v, %v; want %+v, %s", text, n, err, terms, canonical)
		}
	}
	check("loss<=1s", "loss<=1s", advise.Term{Of: advise.Loss, Limit: 1e9})
	check(" loss <= 0 ", "loss<=0", advise.Term{Of: advise.Loss})
	check("loss<=0B,crash<=0s", "loss<=0,crash<=0", advise.Term{Of: advise.Loss}, advise.Term{Of: advise.Crash})
	check("crash<=64k", "crash<=64KiB", advise.Term{Of: advise.Crash, Unit: advise.Bytes, Limit: 65536})
	check("rate>=50k/s", "rate>=50k/s", advise.Term{Of: advise.Rate, Unit: advise.Records, Limit: 50000})
	check("rate>=50500/s", "rate>=50.5k/s", advise.Term{Of: advise.Rate, Unit: advise.Records, Limit: 50500})
	check("rate>=1.25M/s", "rate>=1.25M/s", advise.Term{Of: advise.Rate, Unit: advise.Records, Limit: 1250000})
	check("rate>=7/s", "rate>=7/s", advise.Term{Of: advise.Rate, Unit: advise.Records, Limit: 7})
	check("rate>=10MiB/s", "rate>=10MiB/s", advise.Term{Of: advise.Rate, Unit: advise.Stream, Limit: 10 << 20})
	check("rate>=100B/s", "rate>=100B/s", advise.Term{Of: advise.Rate, Unit: advise.Stream, Limit: 100})
	check("p99<10ms", "p99<10ms", advise.Term{Of: advise.P99, Strict: true, Limit: 1e7})
	check("max<=1s,p99.9<50ms,p90<2ms,p50<=1ms", "p50<=1ms,p90<2ms,p99.9<50ms,max<=1s",
		advise.Term{Of: advise.P50, Limit: 1e6}, advise.Term{Of: advise.P90, Strict: true, Limit: 2e6},
		advise.Term{Of: advise.P999, Strict: true, Limit: 5e7}, advise.Term{Of: advise.Max, Limit: 1e9})
	check("memory<=0,rate>=1k/s,cpu<=12.5%", "rate>=1k/s,cpu<=12.5%,memory<=0", advise.Term{Of: advise.Rate, Unit: advise.Records, Limit: 1000},
		advise.Term{Of: advise.CPU, Unit: advise.Share, Limit: 1250}, advise.Term{Of: advise.Memory, Unit: advise.Bytes})
}

func TestParseNeedRefuses(t *testing.T) {
	check := func(text string, parts ...string) {
		t.Helper()
		n, err := advise.ParseNeed(text)
		if err == nil {
			t.Errorf("%q is taken as %v", text, n)
			return
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v; want …%s…", text, err, part)
			}
		}
	}
	check("", "the need is empty", "loss<=1s")
	check("loss<=1s;p99<10ms", "joined by commas", "loss<=1s,rate>=50k/s")
	check("loss<=1s && p99<10ms", "joined by commas", "loss<=1s,rate>=50k/s")
	check("fast", `"fast" has no <=, < or >=`, "rate>=50k/s")
	check("loss<=1s,", `"" has no`)
	check("speed>=1", `"speed" is not a term of a need; use loss, crash, rate,`, "or memory")
	check("loss<1s", `"loss<1s": loss takes <= and not <`, "loss<=64KiB")
	check("loss=0", "loss takes <= and not =")
	check("rate<=5/s", "rate takes >= and not <=")
	check("p99>=1ms", "p99 takes < or <= and not >=")
	check("p99<>1ms", "and not <>")
	check("loss<=often", `"often" is neither 0 nor a duration nor a size`)
	check("loss<=5", `"5" has no unit; write it like loss<=1s`)
	check("loss<=-1s", `"-1s" is negative`)
	check("loss<=64KIB", `"64KIB" is neither`)
	check("p99<10", `"10" is not a duration`)
	check("p99<0s", `"0s" is not above 0`)
	check("rate>=50k", `"50k" does not end with /s`, "rate>=10MiB/s")
	check("rate>=0/s", `"0/s" is not above 0`)
	check("rate>=1.0001k/s", `"1.0001k" is not a whole number of records`)
	check("rate>=k/s", `"k" is not a whole number`)
	check("rate>=1.MB/s", "not a whole number")
	check("rate>=99999999999M/s", "is not a whole number")
	check("memory<=lots", `"lots" does not start with a whole number`)
	check("rate>=1/s,cpu<=5", `"5" is not a percentage`)
	check("rate>=1/s,cpu<=0%", `"0%" is not a percentage above 0`)
	check("cpu<=5%", "no rate is given")
	check("loss<=1s,loss<=2s", "loss is given twice")
}

func FuzzNeed(f *testing.F) {
	f.Add("loss<=1s,rate>=50k/s,p99<10ms")
	f.Add("crash<=64KiB,rate>=10MB/s,cpu<=0.25%,memory<=1GiB,p50<=1h2m3.000000004s")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := advise.ParseNeed(text)
		if err != nil {
			return
		}
		again, err := advise.ParseNeed(n.String())
		if err != nil || !slices.Equal(again, n) {
			t.Errorf("%q is %+v, whose text %q is %+v, %v", text, n, n, again, err)
		}
	})
}

func TestNeedWithReplacesTermByTerm(t *testing.T) {
	n := need(t, "loss<=0,p99<10ms")
	both, err := n.With(need(t, "p99<5ms,rate>=1k/s"))
	if err != nil || both.String() != "loss<=0,rate>=1k/s,p99<5ms" || n.String() != "loss<=0,p99<10ms" {
		t.Errorf("%v, %v", both, err)
	}
	if _, err := (advise.Need{{Of: advise.CPU, Unit: advise.Share, Limit: 5}}).With(nil); err == nil {
		t.Error("cpu is taken without a rate")
	}
}

func need(t *testing.T, text string) advise.Need {
	t.Helper()
	n, err := advise.ParseNeed(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCandidatesKeepTheNeedBesidesWhatIsInFlight(t *testing.T) {
	check := func(text string, want ...string) {
		t.Helper()
		n := need(t, text)
		var got []string
		for _, p := range advise.Candidates(n) {
			got = append(got, p.String())
			if !n.Covers(p) {
				t.Errorf("%s: %v promises less", text, p)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", text, got, want)
		}
	}
	durable := []string{"buffer=64KiB,sync=group", "buffer=4KiB,sync=group", "buffer=0,sync=group", "buffer=0,sync=each"}
	check("loss<=100ms", "buffer=64KiB,sync=50ms", "buffer=64KiB,sync=group", "buffer=4KiB,sync=50ms", "buffer=0,sync=50ms",
		"buffer=4KiB,sync=group", "buffer=0,sync=group", "buffer=0,sync=each")
	check("loss<=0", durable...)
	check("loss<=0,memory<=8KiB", durable[1:]...)
	check("loss<=64KiB,memory<=0", durable[2:]...)
	check("p99<1ms,memory<=8KiB", append([]string{"buffer=4KiB,sync=never", "buffer=0,sync=never"}, durable[1:]...)...)
	check("crash<=0,loss<=1s", "buffer=64KiB,sync=group", "buffer=0,sync=500ms", "buffer=4KiB,sync=group", "buffer=0,sync=group", "buffer=0,sync=each")
	check("crash<=100ms,memory<=32KiB", append([]string{"buffer=4KiB,flush=50ms,sync=never", "buffer=0,sync=never"}, durable[1:]...)...)
	check("crash<=8KiB", "buffer=64KiB,sync=group", "buffer=4KiB,sync=never", "buffer=0,sync=never", "buffer=4KiB,sync=group", "buffer=0,sync=group", "buffer=0,sync=each")
	check("loss<=1MiB", "buffer=64KiB,sync=512KiB", "buffer=64KiB,sync=group", "buffer=4KiB,sync=512KiB", "buffer=0,sync=512KiB",
		"buffer=4KiB,sync=group", "buffer=0,sync=group", "buffer=0,sync=each")
	check("loss<=262143B,memory<=0", "buffer=0,sync=group", "buffer=0,sync=each")
	check("loss<=1h", append([]string{"buffer=64KiB,sync=1s", "buffer=64KiB,sync=group", "buffer=4KiB,sync=1s", "buffer=0,sync=1s"}, durable[1:]...)...)
	if got := advise.Candidates(need(t, "loss<=1s,crash<=1s,memory<=1MiB")); !slices.Contains(got, holdfast.Periodic(500*time.Millisecond)) {
		t.Errorf("a flush is added where the sync bounds the loss: %v", got)
	}
}
