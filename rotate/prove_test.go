//go:build go1.25

package rotate_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/catalogue"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
)

// TestWorkloadsOfTheLogHold: what holdfast prove runs.
func TestWorkloadsOfTheLogHold(t *testing.T) {
	crashsuite.Prove(t, 2*time.Second, catalogue.Find("rotate"), catalogue.Find("rotate-shared"), catalogue.Find("rotate-close"), catalogue.Find("rotate-full"))
}
