package humanize

import "testing"

func TestNear(t *testing.T) {
	names := []string{"lines", "latency", "locks", "etcd", "postgres-commit", "postgres-async", "markdown", "csv"}
	check := func(word, want string) {
		t.Helper()
		if got := Near(word, names); got != want {
			t.Errorf("%q: %q, wanted %q", word, got, want)
		}
	}
	check("ETCD", "etcd")
	check("lnies", "lines")
	check("lokcs", "locks")
	check("latencies", "")
	check("post", "postgres-commit")
	check("md", "")
	check("markdwon", "markdown")
	check("cvs", "csv")
	check("xyz", "")
	check("", "")
}
