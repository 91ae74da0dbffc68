// Package serve is the command serve: the results in a directory as pages for a browser. It reads
// only that directory, and writes nothing. Start with [New]; server.go has the requests and their
// answers.
package serve

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// anyPort is the default of --listen: this machine only, and a free port.
const anyPort = "127.0.0.1:0"

// New is the command. It shows results of these studies, and of sweeps.
func New(studies study.List) *cobra.Command {
	listen := anyPort
	cmd := &cobra.Command{
		Use: "serve [directory] [flags]",
		Long: `Serve shows the results in a directory (default: the current one) as pages, and
prints the address to open in a browser. A list has the newest results first; search
it by machine, policy and study. Each run opens as the page that holdfast report -o
writes. Tick two or more runs to compare them, or to compare their hosts as holdfast
fleet does. A run that is still going on is shown live.

It answers only this machine, unless --listen names another address. It reads
nothing outside of the directory, and writes nothing. It runs until you interrupt
it; the exit code is then 0.`,
		Example: `  holdfast serve
  holdfast serve . --listen 127.0.0.1:8484`,
		Annotations: cli.Exits(map[int]string{cli.ExitOK: "it was interrupted", cli.ExitInterrupted: ""}),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Misuse("for instance: holdfast serve .", "serve takes one directory, but %d were given", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return run(cmd, studies, dir, listen)
		},
	}
	cmd.Flags().Var(cli.Once("address", &listen, parseAddress), "listen", "answer at this address (default: "+anyPort+": a free\nport, which only this machine can reach)")
	return cmd
}

// parseAddress parses a host and a port. It refuses an empty host, which means every network of the
// machine.
func parseAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("%q is not an address such as 127.0.0.1:8484", text)
	}
	if host == "" {
		return "", fmt.Errorf("%q names no host; use 127.0.0.1:%s for this machine alone, or 0.0.0.0:%[2]s for all its networks", text, port)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q is not a port; use 0 to 65535, and 0 for one that is free", port)
	} else if n == 0 {
		return net.JoinHostPort(host, "0"), nil
	}
	return text, nil
}

func run(cmd *cobra.Command, studies study.List, dir, address string) error {
	root, err := openDir(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// A server outlives the reader of its output. A browser that disconnects within a page raises this
	// signal too, and main would end at it then.
	signal.Ignore(syscall.SIGPIPE)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return cannotListen(address, err)
	}
	host, _, _ := net.SplitHostPort(address) // parseAddress has checked it
	at := listener.Addr().(*net.TCPAddr)
	if !at.IP.IsLoopback() {
		cli.Say(cmd.ErrOrStderr(), "caution: everybody who can reach %s can read these results; there is no password and no encryption", at)
	}
	cli.Say(cmd.ErrOrStderr(), "showing the results in %s until it is interrupted", dir)
	_, port, _ := net.SplitHostPort(at.String())
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "http://%s/\n", net.JoinHostPort(host, port)); err != nil {
		return errors.Join(err, listener.Close())
	}
	err = serveAll(cmd.Context(), listener, newServer(studies, root, host), func(v any) {
		cli.Say(cmd.ErrOrStderr(), "a page failed, please report it: %v", v)
	})
	if err != nil {
		err = &cli.Refusal{Code: cli.ExitCannot, Err: err}
	}
	return err
}

// openDir opens the directory that a user named. Its errors are refusals.
func openDir(dir string) (*os.Root, error) {
	if dir == "" {
		return nil, cli.Misuse("leave it out for the current directory", "the name of the directory is empty")
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, cli.Misuse("name the directory that holds your results", "there is no directory %s", dir)
	case err != nil:
		return nil, cli.Misuse("choose a directory that you may read", "%s: %w", dir, cli.Cause(err))
	case !info.IsDir():
		return nil, cli.Misuse("holdfast report shows a single file", "%s is a file, not a directory of results", dir)
	}
	root, err := os.OpenRoot(dir)
	if err == nil {
		_, err = readNames(root)
		if err != nil {
			root.Close()
		}
	}
	if err != nil {
		return nil, cli.Misuse("choose a directory that you may read", "%s: %w", dir, cli.Cause(err))
	}
	return root, nil
}

func cannotListen(address string, err error) error {
	hint := "choose another address with --listen; 127.0.0.1:0 means any free port"
	if errors.Is(err, syscall.EACCES) {
		hint = "ports below 1024 need rights; choose another port, or 127.0.0.1:0 for any free one"
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("--listen %s: %w", address, err), Hint: hint}
}
