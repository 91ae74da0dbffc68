// Package mutants holds a table of faults, each a small change of the sources. Its test
// plants them one by one and runs the tests that are to catch them. It plants them with
// go build's overlay and never touches the tree. It has nothing to import.
// docs/mutants.md says how to run it and has the last table.
package mutants
