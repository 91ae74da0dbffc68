package machine

import "testing"

func TestSwapOnFilesWithHostileNames(t *testing.T) {
	check := checker(t, tree(map[string]string{"proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n" +
		"/a\u00a0b\f\\040c                  file\t\t1024\t\t0\t\t-2\n/dev/vdb                                partition\t2048\t\t0\t\t-3\n"}).memory())
	check("swap", "/a\u00a0b\f c (1.0 MiB), /dev/vdb (2.0 MiB)")
}
