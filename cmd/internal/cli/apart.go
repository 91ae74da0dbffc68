package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// A Pair is a flag and others, with spaces between them, of which none can be given beside it.
type Pair struct{ Flag, Others, Why, Hint string }

// Apart refuses the first pair that is given.
func Apart(cmd *cobra.Command, pairs ...Pair) error {
	for _, p := range pairs {
		for other := range strings.FieldsSeq(p.Others) {
			if cmd.Flags().Changed(p.Flag) && cmd.Flags().Changed(other) {
				return Misuse(cmp.Or(p.Hint, "leave one out"), "%s", cmp.Or(p.Why, fmt.Sprintf("--%s and --%s contradict each other", p.Flag, other)))
			}
		}
	}
	return nil
}
