package prove

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/prove"
)

// commandLines are this program's own, which level fault gives failing calls.
func commandLines() []*prove.Command {
	var lines, old strings.Builder
	splits := map[string]string{}
	for i := range 40 {
		fmt.Fprintf(&lines, `{"k":%d,"text":%q}`+"\n", i, strings.Repeat("x", i))
		fmt.Fprintf(&old, "old line %d\n", i)
		if i%2 == 0 {
			splits[fmt.Sprint(i)] = old.String()
		}
	}
	return []*prove.Command{
		{Name: "cli-write", Input: lines.String(), Acks: true, Args: func(dir string) []string {
			return []string{"write", "--out", filepath.Join(dir, "log"), "--policy", "sync=group", "--ack", "--quiet"}
		}},
		{Name: "cli-split", Input: lines.String(), Before: splits, Whole: true, Args: func(dir string) []string {
			return []string{"write", "--out", filepath.Join(dir, "{k}"), "--split", "--mode", "replace", "--policy", "sync=group", "--quiet"}
		}},
		{Name: "cli-copy", Before: map[string]string{"from": lines.String(), "to": old.String()}, Whole: true, Args: func(dir string) []string {
			return []string{"copy", filepath.Join(dir, "from"), filepath.Join(dir, "to"), "--policy", "atomic", "--quiet"}
		}},
		{Name: "cli-gen", Before: map[string]string{"old": old.String()}, Whole: true, Args: func(dir string) []string {
			return []string{"gen", filepath.Join(dir, "new"), "300000", "--seed", "1", "--quiet"}
		}},
		{Name: "cli-gen-force", Before: map[string]string{"file": old.String()}, Whole: true, Args: func(dir string) []string {
			return []string{"gen", filepath.Join(dir, "file"), "300000", "--seed", "1", "--force", "--quiet"}
		}},
	}
}
