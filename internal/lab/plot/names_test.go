package plot

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/lab/timing"
)

// TestLongNamesOfFileSystemsAreTurned: side by side they would lie on each other.
func TestLongNamesOfFileSystemsAreTurned(t *testing.T) {
	draw := func(names ...string) string {
		var rows []timing.Row
		for _, name := range names {
			rows = append(rows, timing.Row{FileSystem: name, Form: timing.Copy, Buffer: 4096, Elapsed: 0.1})
		}
		panels, _ := All(rows)
		return svgOf(t, find(t, panels, "elapsed-by-file-system-per-buffer"))
	}
	const turned = "<g transform=\"rotate(45)\">"
	if svg := draw("btrfs", "ext2", "ext4", "jfs", "xfs"); strings.Contains(svg, turned) {
		t.Error("short names are turned")
	}
	svg := draw("btrfs", "ext2", "ext3", "ext4", "ext4-journal", "ext4-nojournal", "ext4-writeback", "xfs")
	if strings.Count(svg, turned) != 8 {
		t.Errorf("%d of 8 names are turned", strings.Count(svg, turned))
	}
}
