//go:build !linux

package study

// openDataSync is 0: there is no O_DSYNC here that Go knows.
const openDataSync = 0
