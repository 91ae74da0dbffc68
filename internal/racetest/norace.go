//go:build !race

// Package racetest says whether the race detector is on. It is for tests only.
package racetest

// Enabled says that the race detector is on.
const Enabled = false
