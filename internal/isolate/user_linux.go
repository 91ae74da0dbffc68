package isolate

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// User runs a test as an ordinary user. If root runs the tests, it does so in a child process.
func User(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Geteuid() != 0 {
		test(t)
		return
	}
	Process(t, func(t *testing.T) {
		const nobody = 65534
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
			t.Skip("root can't become an ordinary user: ", err)
		}
		test(t)
	})
}
