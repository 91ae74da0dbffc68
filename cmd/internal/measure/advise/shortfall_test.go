package advise

import "testing"

func TestShortfallIsThatOfTheWorstTerm(t *testing.T) {
	worst := Finding{Term: Term{Of: P99, Limit: 10}, Verdict: NotMet, Value: 100}
	other := Finding{Term: Term{Of: Memory, Unit: Bytes, Limit: 10}, Verdict: NotMet, Value: 20}
	slow := Finding{Term: Term{Of: Rate, Limit: 30}, Verdict: NotMet, Value: 10}
	for _, all := range [][]Finding{{worst, other, slow}, {slow, worst, other}, {other, slow, worst}} {
		if ratio, n := (Judgement{Findings: all}).shortfall(); ratio != 10 || n != (unmet{0, 3}) {
			t.Errorf("%v: %v, %+v; want 10 times, of three terms", all, ratio, n)
		}
	}
}
