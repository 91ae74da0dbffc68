package study

import "strings"

// insideAndOut is what the same arms take on the same file system inside User-Mode
// Linux and outside, so that a reader sees what being inside costs. ok is false for a
// run that has no file system on both sides. A folder's own file system stands for one
// that only root could have made.
func insideAndOut(all []Evidence) (t Table, ok bool) {
	t = Table{
		Title: "what being inside User-Mode Linux costs: time of a record",
		Notes: []string{
			"a ratio is inside to outside, of the same rounds",
			"times inside compare with each other alone: every system call there is caught and carried out by another process, and a cache is in memory that is another cache's",
		},
	}
	for _, inside := range all {
		name, is := strings.CutPrefix(inside.FileSystem, userModeLinux)
		for _, outside := range all {
			if !is || outside.FileSystem != name {
				continue
			}
			t.Head = []string{"arm", outside.FileSystem, inside.FileSystem, "inside to outside"}
			for _, arm := range armsAcross([]Evidence{outside}) {
				if inside.have(arm.Name) {
					t.Rows = append(t.Rows, []string{
						label(arm), duration(outside.Median(arm.Name, PerRecord)), duration(inside.Median(arm.Name, PerRecord)),
						compared(inside.Beside(outside, arm.Name, PerRecord)),
					})
				}
			}
		}
	}
	return t, len(t.Rows) > 0
}
