// Package tree has the tests of the repository: what may import what, what the pages show, and
// whether the modules can be fetched. It has nothing to import.
package tree
