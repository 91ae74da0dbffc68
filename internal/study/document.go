package study

// The published documents, by the names that docs/studies.md has for them.
const (
	fileIOExperiment   = "go-file-io-experiment"
	efficientBuffering = "go-efficient-buffering"
	bufferingDrill     = "os-course-buffering-drill"
	copyBufferSizes    = "tlpi-copy-buffer-sizes"
	writerBenchmarks   = "go-writer-package-benchmarks"
)
