package lines

import (
	"errors"
	"io"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

func TestWrongBytesAreNoTrialOfLines(t *testing.T) {
	g := studytest.WorkDir(t)
	studytest.WrongBytesAreNoTrial(t, g, "lines", lineRun{text: lineText{format: bufferedLine}, count: 20, writers: 1, way: goBuffer(512, 0)}.task())
	studytest.WrongBytesAreNoTrial(t, g, "lines as published, buffered", modeRun{true, 20}.task())
	studytest.WrongBytesAreNoTrial(t, g, "lines as published, unbuffered", modeRun{false, 20}.task())
	studytest.WrongBytesAreNoTrial(t, g, "forgotten flush", forgotten{by: study.Ours, buffer: 512, count: 20}.task())
}

// A turning reader changes every byte.
type turning struct{ io.ReadCloser }

func (r turning) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	for i := range p[:n] {
		p[i] ^= 1
	}
	return n, err
}

func TestWrongBytesOfAStreamAreNoTrial(t *testing.T) {
	s := lineStream{lineRun{text: lineText{format: bufferedLine}, count: 20, writers: 1}, func() (holdfast.File, io.ReadCloser, error) {
		to, from, err := connectPipe()
		return to, turning{from}, err
	}}
	var wrong *trial.ContentError
	if _, err := s.task().Run(t.Context(), studytest.WorkDir(t), trial.NotCounting, 1, 1); !errors.As(err, &wrong) {
		t.Errorf("err = %v", err)
	}
}

// TestLoadedLinesAreWrittenBesideBusyProcesses: the processes end with the trial, and the written
// bytes are compared as elsewhere.
func TestLoadedLinesAreWrittenBesideBusyProcesses(t *testing.T) {
	g := studytest.WorkDir(t)
	for _, a := range loadedArms(50) {
		m, err := a.Task().Run(t.Context(), g, trial.NotCounting, a.Records, a.Records*a.RecordBytes)
		if err != nil || m.Elapsed == 0 {
			t.Errorf("%s: %+v, %v", a.Name, m, err)
		}
	}
	studytest.WrongBytesAreNoTrial(t, g, "loaded", loadedArms(50)[0].Task())
}
