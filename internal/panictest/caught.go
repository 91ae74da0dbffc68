// Package panictest has what tests of panics share. It is for tests only.
package panictest

// Caught calls f in a goroutine of its own and returns its error, what it panicked
// with, and whether it came back in neither way.
func Caught(f func() error) (cause any, exited bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		exited = true
		defer func() {
			if cause = recover(); cause != nil {
				exited = false
			}
		}()
		err = f()
		exited = false
	}()
	<-done
	return cause, exited, err
}
