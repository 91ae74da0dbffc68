package prove

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// inFakeTime calls a function in a bubble of fake time, and waits for all that it has started. An error says that all of that waits
// for ever. A bubble takes a test, of which nothing but the bubble is used.
func inFakeTime(run func()) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%v", cause)
		}
	}()
	synctest.Test(new(testing.T), func(*testing.T) { run() })
	return nil
}
