package provetest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/provetest"
)

// A store with a file for each key is killed again and again, and must not lose what it acknowledged. In a program's own
// tests this is a func TestStoreSurvivesCrashes(t *testing.T).
func ExampleTest() {
	testStoreSurvivesCrashes := func(t *testing.T) {
		provetest.Test(t, provetest.Workload{
			Write: func(dir string, log *provetest.Log) error {
				for n := 0; ; n++ {
					key, value := fmt.Sprint(n%10), fmt.Sprint(n)
					log.Begin(key, value)
					if err := os.WriteFile(filepath.Join(dir, key+".new"), []byte(value), 0o644); err != nil {
						return err
					}
					if err := os.Rename(filepath.Join(dir, key+".new"), filepath.Join(dir, key)); err != nil {
						return err
					}
					log.Ack(key, value) // from here on a kill must not lose it
				}
			},
			Read: func(dir string) (map[string]string, error) {
				values := map[string]string{}
				for n := range 10 {
					key := fmt.Sprint(n)
					if data, err := os.ReadFile(filepath.Join(dir, key)); err == nil {
						values[key] = string(data)
					}
				}
				return values, nil
			},
			Synced: false, // true: it must survive a power cut too, which this store does not
		})
	}
	_ = testStoreSurvivesCrashes
}
