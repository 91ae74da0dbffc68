package figure

// Steadiness reports how the trials of a cell became steady.
type Steadiness struct {
	Trials     int    `json:"trials"`
	Steady     int    `json:"steady_trials"`
	First      Number `json:"first_bytes_per_s"` // in the first sample: the median of the trials
	Throughput Number `json:"bytes_per_s"`       // in the last window: the median of the steady trials
	After      Number `json:"until_steady_ns"`   // from the first Write: the median of the steady trials
	Samples    int    `json:"samples"`           // of all trials
	Throttled  int    `json:"throttled_samples"` // at their end the kernel slowed writers down, for too much was dirty
	Unwritten  int64  `json:"max_dirty_bytes"`   // dirty or being written, of the whole machine: the largest of all samples
}
