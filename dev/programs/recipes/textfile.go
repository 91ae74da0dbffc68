package recipes

import (
	"bytes"
	"context"
	"path/filepath"

	"github.com/holdfast-go/holdfast/files"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// WriteTextfile writes metrics for the textfile collector of Prometheus' node exporter, which reads all *.prom of a directory: it must
// never see half a file. After a power cut old metrics are of no use, so the Set's policy may be the zero Policy, which syncs nothing: the file
// is still replaced whole. To export what holdfast does, register NewCollector of adapters/prometheus.
func WriteTextfile(ctx context.Context, set *files.Set, dir, name string, from prometheus.Gatherer) error {
	families, err := from.Gather()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			return err
		}
	}
	_, err = set.WriteFile(ctx, filepath.Join(dir, name+".prom"), text.Bytes(), files.Replace)
	return err
}
