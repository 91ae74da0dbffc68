package isolate

// Caught calls f in a goroutine of its own. It returns f's error, its panic value, and whether f
// ended its goroutine in another way.
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
