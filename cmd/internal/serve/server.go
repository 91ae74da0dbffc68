package serve

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/fleet"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/fleet/show"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// The files sent besides pages: their style, and the script of a run in progress.
var (
	//go:embed style.css
	styleText string
	//go:embed live.js
	liveText string
)

// A server answers the requests of browsers. Any number of goroutines may use it.
type server struct {
	host    string // the host given by the user, without the port
	store   *store
	streams chan struct{} // one for each open stream of events
}

// mostStreams bounds the streams of events: each reads a file again and again.
const mostStreams = 32

// newServer returns a handler for the results in a directory. host is the host given by the user.
func newServer(studies study.List, root *os.Root, host string) handler {
	s := &server{host: host, store: &store{root: root, studies: studies, reading: make(chan struct{}, 1), cache: map[string]*cached{}}, streams: make(chan struct{}, mostStreams)}
	return s.answer
}

// ownPolicy limits the loads and scripts of the server's own pages.
const ownPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; " + noFrames

const (
	// reportPolicy is for a report without a policy: its style and its pictures are inside.
	reportPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
	noFrames     = "frame-ancestors 'none'" // only a header can set it
)

// policyOf returns the policy of a report's page. A report may itself name its permitted scripts.
func policyOf(page string) string {
	policy := reportPolicy
	// Texts of results come later in the page, and have no markup.
	if _, rest, ok := strings.Cut(page, `<meta http-equiv="Content-Security-Policy" content="`); ok {
		says, _, _ := strings.Cut(rest, `"`)
		policy = html.UnescapeString(says)
	}
	return policy + "; " + noFrames
}

// answer answers only requests of its own pages. A foreign name that leads here (DNS rebinding) has
// another Host, and a script of another site another Origin. A picture or a link of another site has no Origin:
// browsers name its site. A server at another port of this machine is another one too.
func (s *server) answer(ctx context.Context, w *response, r *request) {
	for _, h := range [][2]string{
		{"X-Content-Type-Options", "nosniff"}, {"X-Frame-Options", "DENY"}, {"Referrer-Policy", "no-referrer"}, {"Cache-Control", "no-store"},
		{"Cross-Origin-Resource-Policy", "same-origin"}, {"Cross-Origin-Opener-Policy", "same-origin"},
	} {
		w.Set(h[0], h[1])
	}
	switch {
	case r.Local == nil || !s.isOwn(r.Host, r.Local):
		plain(w, statusMisdirected, fmt.Sprintf("this server is not %q: open the address that holdfast serve printed; a forwarded port must have the same number on both sides", r.Host))
	case len(r.Origins) > 1 || len(r.Origins) == 1 && !strings.EqualFold(r.Origins[0], "http://"+r.Host):
		plain(w, statusForbidden, fmt.Sprintf("pages of %q may not use this server", strings.Join(r.Origins, ", ")))
	case slices.ContainsFunc(r.Sites, func(site string) bool { return site != "same-origin" && site != "none" }):
		plain(w, statusForbidden, "a page of another site may not use this server: enter the address that holdfast serve printed into the browser's address bar")
	case r.Method != "GET" && r.Method != "HEAD":
		w.Set("Allow", "GET, HEAD")
		plain(w, statusMethodNotAllowed, fmt.Sprintf("%q is not allowed: this server changes nothing", r.Method))
	default:
		s.route(ctx, w, r)
	}
}

func (s *server) route(ctx context.Context, w *response, r *request) {
	switch r.Path {
	case "/":
		s.list(ctx, w, r)
	case "/report":
		s.report(ctx, w, r)
	case "/compare":
		s.compare(ctx, w, r)
	case "/fleet":
		s.fleet(ctx, w, r)
	case "/live":
		s.live(ctx, w, r)
	case "/events":
		s.events(ctx, w, r)
	case "/style.css":
		sendWith(w, ownPolicy, statusOK, "text/css; charset=utf-8", styleText)
	case "/live.js":
		sendWith(w, ownPolicy, statusOK, "text/javascript; charset=utf-8", liveText)
	default:
		s.refuse(w, statusNotFound, fmt.Sprintf("there is no page %s", r.Path))
	}
}

// isOwn reports whether a Host is this server: the address of the connection, the host given by the
// user, or localhost.
func (s *server) isOwn(host string, local *net.TCPAddr) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil { // browsers leave out the default port
		name, port = strings.Trim(host, "[]"), "80"
	}
	if port != fmt.Sprint(local.Port) {
		return false
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.Equal(local.IP) || strings.EqualFold(name, s.host) || local.IP.IsLoopback() && strings.EqualFold(name, "localhost")
}

// sendWith sends a text under a Content-Security-Policy.
func sendWith(w *response, policy string, status int, kind, text string) {
	w.Set("Content-Security-Policy", policy)
	w.Send(status, kind, cli.Visible(text))
}

// plain sends one sentence.
func plain(w *response, status int, sentence string) {
	sendWith(w, ownPolicy, status, "text/plain; charset=utf-8", cli.OneLine(sentence)+"\n")
}

// refuse answers with a page of one sentence.
func (s *server) refuse(w *response, status int, sentence string) {
	sendPage(w, status, refusalPage(cli.OneLine(sentence)))
}

const pageKind = "text/html; charset=utf-8"

// sendPage sends one of the server's own pages.
func sendPage(w *response, status int, page string) {
	sendWith(w, ownPolicy, status, pageKind, page)
}

// mostListed bounds the rows of the list.
const mostListed = 500

func (s *server) list(ctx context.Context, w *response, r *request) {
	page, ok := s.search(ctx, w, r)
	if !ok {
		return
	}
	page.found = len(page.entries)
	page.entries = page.entries[:min(page.found, mostListed)]
	for _, list := range []*[]string{&page.machines, &page.policies, &page.studies} {
		slices.Sort(*list)
		*list = slices.DeleteFunc(slices.Compact(*list), func(one string) bool { return one == "" })
	}
	sendPage(w, statusOK, page.markup())
}

// search returns the listings that a request asks for. If it can't, it sends the reason, and ok is
// false.
func (s *server) search(ctx context.Context, w *response, r *request) (page listPage, ok bool) {
	entries, err := s.store.entries(ctx)
	if err != nil {
		s.refuse(w, statusFailed, "the directory can't be read: "+cli.Cause(err).Error())
		return listPage{}, false
	}
	q := r.Query
	page = listPage{wanted: filter{Words: q.Get("words"), Machine: q.Get("machine"), Policy: q.Get("policy"), Study: q.Get("study")}, all: len(entries)}
	for _, e := range entries {
		page.machines, page.studies = append(page.machines, e.Machine), append(page.studies, e.Study)
		page.policies = append(page.policies, e.Policies...)
		if page.wanted.matches(e) {
			page.entries = append(page.entries, e)
		}
	}
	return page, true
}

// read reads the run that a request names. If it can't, it sends the reason, and ok is false.
func (s *server) read(ctx context.Context, w *response, name string) (run result.Run, ok bool) {
	run, err := s.store.read(ctx, name, result.Read)
	switch {
	case err == nil:
		return run, true
	case errors.Is(err, fs.ErrNotExist):
		s.refuse(w, statusNotFound, fmt.Sprintf("there is no file %q in the directory", name))
	default:
		s.refuse(w, statusNotShown, fmt.Sprintf("%q can't be shown: %v", name, cli.Cause(err)))
	}
	return run, false
}

// report sends the page that holdfast report -o writes.
func (s *server) report(ctx context.Context, w *response, r *request) {
	name := r.Query.Get("file")
	run, ok := s.read(ctx, w, name)
	if !ok {
		return
	}
	var page strings.Builder
	if err := report.HTML(&page, s.store.studies, run, report.More{}); err != nil {
		s.refuse(w, statusNotShown, fmt.Sprintf("%q can't be shown: %v", name, err))
		return
	}
	sendWith(w, policyOf(page.String()), statusOK, pageKind, page.String())
}

// mostCompared bounds the runs of one comparison.
const mostCompared = 8

// compare compares the oldest of the named runs with each of the others.
func (s *server) compare(ctx context.Context, w *response, r *request) {
	names := r.Query["file"]
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < 2 || len(names) > mostCompared {
		s.refuse(w, statusBadRequest, fmt.Sprintf("%s ticked: a comparison takes 2 to %d", cli.CountText(int64(len(names)), "file"), mostCompared))
		return
	}
	var sides []figure.Side
	for _, name := range names {
		run, ok := s.read(ctx, w, name)
		if !ok {
			return
		}
		side, err := figure.NewSide(cli.OneLine(name), run)
		if err != nil {
			s.refuse(w, statusNotShown, fmt.Sprintf("%q can't be compared: %v", name, err))
			return
		}
		sides = append(sides, side)
	}
	slices.SortStableFunc(sides, func(a, b figure.Side) int { return a.StartedAt.Compare(b.StartedAt) })
	var pairs []pair
	for _, b := range sides[1:] {
		pairs = append(pairs, newPair(sides[0], b))
	}
	sendPage(w, statusOK, comparePage(pairs))
}

// A pair is a comparison of two runs, in the words of holdfast compare.
type pair struct{ A, B, Text string }

func newPair(a, b figure.Side) pair {
	c, err := figure.Compare(a, b, false, stat.Band)
	var text strings.Builder
	if err == nil {
		err = report.Contrast(&text, c, "", 100)
	}
	if err != nil {
		return pair{a.Name, b.Name, err.Error()}
	}
	return pair{a.Name, b.Name, text.String()}
}

// fleet compares the hosts of the named files, or of all files that the search finds, on the page
// of holdfast fleet.
func (s *server) fleet(ctx context.Context, w *response, r *request) {
	names := slices.Clone(r.Query["file"])
	if len(names) == 0 {
		page, ok := s.search(ctx, w, r)
		if !ok {
			return
		}
		for _, e := range page.entries {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	var hosts []fleet.Host
	var silent []fleet.Silent
	for _, name := range slices.Compact(names) {
		run, err := s.store.read(ctx, name, result.ReadTimes)
		shown := cli.OneLine(name)
		host := fleet.Host{}
		if err == nil {
			host, err = fleet.NewHost(shown, run)
		}
		if err != nil {
			silent = append(silent, fleet.Silent{Host: fleet.NameOf(shown, run.Header), File: shown, Why: cli.OneLine(reason(err))})
			continue
		}
		hosts = append(hosts, host)
	}
	var text strings.Builder
	if err := show.HTML(&text, fleet.New(hosts, silent, nil, fleet.DefaultThreshold)); err != nil {
		s.refuse(w, statusNotShown, fmt.Sprintf("the hosts can't be shown: %v", err))
		return
	}
	sendWith(w, policyOf(text.String()), statusOK, pageKind, text.String())
}

const (
	// everyLook is the time between two reads of a file that may grow. Watching takes CPU time from
	// the run, so a read takes at most one part in restOfLook of the time.
	everyLook  = time.Second
	restOfLook = 50
	// everyBeat is the longest time without a send: only a send detects that the browser is gone.
	everyBeat = 15 * time.Second

	liveWidth = 100 // a table's columns
)

// live sends the page of a run in progress.
func (s *server) live(ctx context.Context, w *response, r *request) {
	name := r.Query.Get("file")
	run, ok := s.read(ctx, w, name)
	if !ok {
		return
	}
	sendPage(w, statusOK, livePage(name, s.viewOf(run)))
}

// A view is the text of a run so far.
type view struct {
	status, table string
	ended         bool
}

func (s *server) viewOf(run result.Run) view {
	v := view{ended: run.End != nil && !run.Torn}
	planned := cli.CountText(int64(run.Header.Plan.Rounds), "round")
	v.status = fmt.Sprintf("%d of %s, %s", run.Rounds(), planned, cli.CountText(int64(len(run.Trials)), "trial"))
	if run.Header.Plan.Width > 0 {
		v.status = fmt.Sprintf("%d of about %s, %s", run.Rounds(), planned, cli.CountText(int64(len(run.Trials)), "trial"))
	}
	if v.ended {
		v.status += ": " + string(run.End.State)
	}
	var text strings.Builder
	err := report.Text(&text, s.store.studies, run, liveWidth, false)
	v.table = text.String()
	if errors.Is(err, figure.ErrNoRound) {
		v.table = "the first round is not complete yet"
	} else if err != nil {
		v.table = err.Error()
	}
	return v
}

// events sends the run as it grows, until it ends (server-sent events, of the HTML standard).
func (s *server) events(ctx context.Context, w *response, r *request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		plain(w, statusBusy, fmt.Sprintf("%d runs are being watched already: close one of those pages", mostStreams))
		return
	}
	name := r.Query.Get("file")
	if _, ok := s.read(ctx, w, name); !ok {
		return
	}
	w.Set("Content-Security-Policy", ownPolicy)
	if w.Stream("text/event-stream") {
		_ = s.follow(ctx, name, &stream{w, time.Now()}) // it ends with the run, or when the browser leaves
	}
}

// follow sends a file's run each time that it has changed.
func (s *server) follow(ctx context.Context, name string, to *stream) error {
	var size int64 = -1
	var changed time.Time
	for {
		began := time.Now()
		info, err := s.store.root.Stat(name)
		if err != nil {
			return to.send("gone", reason(err))
		}
		if info.Size() != size || !info.ModTime().Equal(changed) {
			size, changed = info.Size(), info.ModTime()
			run, err := s.store.read(ctx, name, result.Read)
			if err != nil {
				return to.send("gone", reason(err))
			}
			v := s.viewOf(run)
			if err := errors.Join(to.send("table", v.table), to.send("status", v.status)); err != nil {
				return err
			}
			if v.ended {
				return to.send("end", v.status)
			}
		} else if time.Since(to.sent) >= everyBeat {
			if err := to.send("", ""); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(everyLook, restOfLook*time.Since(began))):
		}
	}
}

// A stream is a stream of events.
type stream struct {
	w    io.Writer
	sent time.Time // the time of the last event
}

// send sends an event; without a name it is a comment, which browsers ignore.
func (s *stream) send(name, text string) error {
	event := ":\n\n"
	if name != "" {
		event = "event: " + name + "\ndata: " + strings.ReplaceAll(cli.Visible(text), "\n", "\ndata: ") + "\n\n"
	}
	s.sent = time.Now()
	_, err := io.WriteString(s.w, event)
	return err
}

// A filter selects listings that match all its fields, except empty ones.
type filter struct{ Words, Machine, Policy, Study string }

func (f filter) matches(e listing) bool {
	in := strings.ToLower(strings.Join(append([]string{e.Name, e.Host, e.Machine, e.Study, e.State}, e.Policies...), "\n"))
	for _, word := range strings.Fields(strings.ToLower(f.Words)) {
		if !strings.Contains(in, word) {
			return false
		}
	}
	return cmp.Or(f.Machine, e.Machine) == e.Machine && cmp.Or(f.Study, e.Study) == e.Study && (f.Policy == "" || slices.Contains(e.Policies, f.Policy))
}

// link returns the address of a page for a file.
func link(page, name string) string { return page + "?" + url.Values{"file": {name}}.Encode() }
