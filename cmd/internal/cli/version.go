package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// NewVersion is the command version.
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

// VersionText is the program with the Go release and the system.
func VersionText() string {
	return fmt.Sprintf("%s, %s, %s/%s", Program(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Program is the name and the version, as far as the build has recorded it.
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
