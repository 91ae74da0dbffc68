//go:build go1.25

package catalogue

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/internal/crash"
)

// Commands are the command's own lines, which level fault gives failing calls.
func Commands() []*crash.Command {
	var lines, old strings.Builder
	splits, splitted := map[string]string{}, map[string]string{}
	for i := range 40 {
		line, name := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", i)), fmt.Sprint(i)
		lines.WriteString(line)
		fmt.Fprintf(&old, "old line %d\n", i)
		if i%2 == 0 {
			splits[name] = old.String()
		}
		splitted[name] = splits[name] + line
	}
	return []*crash.Command{
		{Name: "cli-write", Input: strings.TrimSuffix(lines.String(), "\n"), After: map[string]string{"log": lines.String()}, Acks: true, Args: func(dir string) []string {
			return []string{"write", "--out", filepath.Join(dir, "log"), "--policy", "sync=group", "--ack", "--quiet"}
		}},
		{Name: "cli-split", Input: lines.String(), Before: splits, After: splitted, Args: func(dir string) []string {
			return []string{"write", "-a", "--out", filepath.Join(dir, "{}"), "--split", "1", "--policy", "sync=group", "--quiet"}
		}},
		{Name: "cli-copy", Before: map[string]string{"from": lines.String(), "to": old.String()}, After: map[string]string{"to": lines.String()}, Whole: true, Args: func(dir string) []string {
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
