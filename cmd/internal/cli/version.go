package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// NewVersion returns the command version.
func NewVersion() *cobra.Command {
	return &cobra.Command{
		Use:  "version",
		Long: "Version shows which holdfast this is: its version, the commit it was built\nfrom where that is known, the Go release and the system.",
		Example: `  holdfast version
  holdfast version --help`,
		Args: NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), VersionText())
			return err
		},
	}
}

// VersionText returns the program's version, the Go release and the system.
func VersionText() string {
	return fmt.Sprintf("%s, %s, %s/%s", Program(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Program returns the name and the version, if the build has recorded one.
func Program() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "holdfast (version unknown)"
	}
	name := "holdfast " + info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			name += " " + s.Value[:min(12, len(s.Value))]
		}
		if s.Key == "vcs.modified" && s.Value == "true" {
			name += " modified"
		}
	}
	return name
}
