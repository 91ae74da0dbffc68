//go:build race

package uml

const raceEnabled = true
