package machine

import "os"

// DirtyLimits are the amounts of dirty memory at which the kernel acts. They change with
// the memory that is available. In a control group with a memory limit, lower ones may
// hold.
type DirtyLimits struct {
	Background int64 `json:"dirty_background_bytes"` // of Dirty: the kernel starts to write back
	Throttle   int64 `json:"dirty_throttle_bytes"`   // of Dirty + Writeback: writers begin to be slowed
	Limit      int64 `json:"dirty_limit_bytes"`      // of Dirty + Writeback: writers wait
}

// ReadDirtyLimits returns the kernel's present limits; ok is false where it does not
// report them.
func ReadDirtyLimits() (limits DirtyLimits, ok bool) {
	return host{files: os.DirFS("/")}.dirtyLimits()
}

func (h host) dirtyLimits() (DirtyLimits, bool) {
	text, _ := h.text("/proc/vmstat")
	background, limit := pages(text, "nr_dirty_background_threshold"), pages(text, "nr_dirty_threshold")
	if background == nil || limit == nil {
		return DirtyLimits{}, false
	}
	// Below the middle of the two limits the kernel slows no writer: see dirty_freerun_ceiling in
	// mm/page-writeback.c.
	middle := *background/2 + *limit/2
	return DirtyLimits{Background: *background, Throttle: middle, Limit: *limit}, true
}
