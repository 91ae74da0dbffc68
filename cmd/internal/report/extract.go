package report

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
)

// resultsName is the results' name on a page: their path is no one else's business.
func resultsName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return cli.OneLine(filepath.Base(name))
}

// unpack writes the results that are inside a page, as they were.
func (r *reporting) unpack(stdout io.Writer) error {
	name, which := r.extract, 0
	if at := strings.LastIndexByte(name, ':'); at > 0 {
		if n, err := strconv.Atoi(name[at+1:]); err == nil && n > 0 {
			name, which = name[:at], n
		}
	}
	site, err := readPage(name)
	if err != nil {
		return err
	}
	found, err := page.Extract(site)
	switch {
	case errors.Is(err, page.ErrNoPage):
		return cli.Misuse("pages are made by holdfast report results.jsonl -o report.html", "--extract %s: %w", name, err)
	case errors.Is(err, page.ErrNoResults):
		return cli.Misuse("ask the author for the results file", "--extract %s: %w", name, err)
	case err != nil:
		return cli.Misuse("download or copy the page again", "--extract %s: %w", name, err)
	case which > len(found):
		return cli.Misuse("count from 1", "--extract %s:%d: the page holds only %s", name, which, cli.CountText(int64(len(found)), "result"))
	case which == 0 && len(found) > 1:
		var names []string
		for _, one := range found {
			names = append(names, cli.OneLine(one.Name))
		}
		return cli.Misuse("choose one by its number, such as --extract "+name+":1", "--extract %s: the page holds several results: %s", name, strings.Join(names, ", "))
	}
	return cli.WriteOut(stdout, r.output, func(w io.Writer) error {
		_, err := cli.Bare(w).Write(found[max(0, which-1)].Bytes)
		return err
	})
}

// readPage reads a page that a user has named.
func readPage(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, cli.Misuse("pages are made by holdfast report results.jsonl -o report.html", "--extract: there is no file %s", name)
	case err == nil && !info.Mode().IsRegular():
		return nil, cli.Misuse("give a page that holdfast report made", "--extract: %s is not a regular file", name)
	}
	site, err := os.ReadFile(name)
	if err != nil {
		return nil, cli.Misuse("choose a file that you may read", "--extract %s: %w", name, cli.Cause(err))
	}
	return site, nil
}
