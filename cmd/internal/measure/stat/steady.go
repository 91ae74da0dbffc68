package stat

import (
	"math"
	"slices"
)

// The limits of a steady state come from the Solid State Storage Performance Test Specification (SNIA,
// version 2.0.2, October 2020), "Steady State". They bound a measurement window of five rounds: the
// largest value less the smallest is at most 20 % of their average, and the straight line that fits
// them best rises or falls by at most 10 %.
const (
	SteadyWindow = 5    // measurements
	steadySpread = 0.20 // of the window's mean
	steadySlope  = 0.10 // likewise
)

// A Window describes the steadiness of a long run in its latest measurements. Without [SteadyWindow]
// positive, finite measurements all fields are NaN.
type Window struct {
	Mean   float64
	Spread float64 // the largest less the smallest, as a part of the mean
	Slope  float64 // change of the fitted line from first to last, as a part of the mean; negative if it falls
}

// Steady reports whether a long run has reached its steady state: its last [SteadyWindow] samples are
// within SNIA's limits of spread and slope. The samples are taken at equal distances. It returns the
// window in either case.
//
// This is a convention, not a test: it has no error rate, and a disk that slows
// down once an hour is steady in between.
func Steady(samples []float64) (w Window, ok bool) {
	nan := math.NaN()
	w = Window{nan, nan, nan}
	if len(samples) < SteadyWindow {
		return w, false
	}
	last := samples[len(samples)-SteadyWindow:]
	for _, x := range last {
		if !(x > 0) || math.IsInf(x, 0) {
			return w, false
		}
	}
	mean, rise := line(last)
	w = Window{Mean: mean, Spread: (slices.Max(last) - slices.Min(last)) / mean, Slope: rise / mean}
	return w, w.Spread <= steadySpread && math.Abs(w.Slope) <= steadySlope
}

// line fits a straight line by least squares. It returns the mean of y, and the rise of the line from
// the first sample to the last.
func line(y []float64) (mean, rise float64) {
	for _, v := range y {
		mean += v / float64(len(y))
	}
	middle := float64(len(y)-1) / 2
	covariance, variance := 0.0, 0.0
	for i, v := range y {
		x := float64(i) - middle
		covariance += x * (v - mean)
		variance += x * x
	}
	return mean, covariance / variance * float64(len(y)-1)
}
