package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"html"
	"io"
	"regexp"
	"strconv"
)

// Results are the results files that a page was made from, unchanged. [Pack] makes them, and [Extract]
// returns their bytes from the page.
type Results struct {
	Name  string
	Bytes []byte // only from Extract

	Size   int    // of the bytes
	Sum    string // SHA-256 of the bytes inside
	Inside string // the bytes, compressed, in base64; empty: too large
	Why    string // the reason why they are not inside; given by Write
}

// A Pack packs results while they are written to it. It keeps no more than a page can hold.
type Pack struct {
	size    int
	sum     hash.Hash
	text    bytes.Buffer
	encoder io.WriteCloser
	z       *gzip.Writer
}

// NewPack returns an empty Pack.
func NewPack() *Pack {
	p := &Pack{sum: sha256.New()}
	p.encoder = base64.NewEncoder(base64.StdEncoding, &p.text)
	p.z, _ = gzip.NewWriterLevel(p.encoder, gzip.BestCompression) // a valid level, so no error
	return p
}

// Write accepts all bytes.
func (p *Pack) Write(b []byte) (int, error) {
	p.size += len(b)
	if p.text.Len() <= mostInside {
		_, _ = p.sum.Write(b) // these two never fail
		_, _ = p.z.Write(b)
	}
	return len(b), nil
}

// Results returns the packed results. The Pack can't be used afterwards.
func (p *Pack) Results(name string) Results {
	_, _ = p.z.Close(), p.encoder.Close()
	return Results{Name: name, Size: p.size, Sum: hex.EncodeToString(p.sum.Sum(nil)), Inside: p.text.String()}
}

// mostInside bounds the results in a page, compressed and in base64. Such a page has 1.5 MB, still
// opens at once, and most mail servers accept it.
const mostInside = 1 << 20

// mostResults bounds the bytes that are unpacked from a page, which anyone may have written.
const mostResults = 1 << 30

// marker identifies a page of holdfast, and the format of its results.
const marker = "holdfast page 1"

// ErrNoPage means that a file is not a page of holdfast report.
var ErrNoPage = errors.New("it is not a page of holdfast report")

// ErrNoResults means that a page has no results inside.
var ErrNoResults = errors.New("there are no results inside: they were too large, or came from a program that kept none")

// ErrChanged means that the results in a page are not the ones that were put there.
var ErrChanged = errors.New("the results inside were changed or cut")

func inside() *regexp.Regexp {
	return regexp.MustCompile(`<script type="application/octet-stream" data-name="([^"]*)" data-bytes="([0-9]{1,10})" data-sha256="([0-9a-f]{64})">([^<]*)</script>`)
}

// Extract returns the results that are in a page, in the order in which they were given. Each
// is whole, to the byte, or there is an error: [ErrNoPage], [ErrNoResults] or [ErrChanged].
func Extract(site []byte) ([]Results, error) {
	if !bytes.Contains(site[:min(len(site), 4096)], []byte(marker)) {
		return nil, ErrNoPage
	}
	found := inside().FindAllSubmatch(site, -1)
	if len(found) == 0 {
		if bytes.Contains(site, []byte("application/octet-stream\" data-name=")) {
			return nil, ErrChanged
		}
		return nil, ErrNoResults
	}
	var all []Results
	for _, m := range found {
		size, err := strconv.Atoi(string(m[2]))
		if err != nil || size > mostResults {
			return nil, ErrChanged
		}
		packed := base64.NewDecoder(base64.StdEncoding, bytes.NewReader(bytes.TrimSpace(m[4])))
		z, err := gzip.NewReader(packed)
		if err != nil {
			return nil, ErrChanged
		}
		text, err := io.ReadAll(io.LimitReader(z, int64(size)+1))
		sum := sha256.Sum256(text)
		if err != nil || len(text) != size || hex.EncodeToString(sum[:]) != string(m[3]) {
			return nil, ErrChanged
		}
		all = append(all, Results{Name: html.UnescapeString(string(m[1])), Bytes: text, Size: size, Sum: string(m[3])})
	}
	return all, nil
}
