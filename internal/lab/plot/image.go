package plot

import (
	"bytes"
	"fmt"
	"html"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

const dpi = 150 // of a PNG

// SVG returns the panel as a document. It has no fonts in it. It names fonts that are as
// wide as the one of its layout.
func (p Panel) SVG() ([]byte, error) {
	canvas := vgsvg.New(width, height)
	p.draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	const repeated = "font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;"
	svg := bytes.ReplaceAll(b.Bytes(), []byte(repeated), nil)
	root := fmt.Sprintf(`<svg role="img" aria-label="%s" font-family="Liberation Sans,Arial,Helvetica,sans-serif"`, html.EscapeString(p.Title))
	return bytes.Replace(svg, []byte("<svg"), []byte(root), 1), nil
}

// PNG returns the panel as an image.
func (p Panel) PNG() ([]byte, error) {
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
	p.draw(draw.New(canvas))
	var b bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(&b)
	return b.Bytes(), err
}

// A Picture is an image as it was published: its panels in one file.
type Picture struct {
	Name   string // of its file, with its ending
	panels []Panel
}

// Pictures returns the published images of which there are all panels, in their order.
func Pictures(panels []Panel) (pictures []Picture) {
	for _, p := range []struct {
		name   string
		panels []string
	}{
		{"Time_by_Buffer_Size_per_File_Size", []string{"elapsed-by-buffer-per-file-size", "total-cpu-by-buffer-per-file-size", "user-cpu-by-buffer-per-file-size", "system-cpu-by-buffer-per-file-size"}},
		{"Time_per_Buffer_Size_w_O_SYNC", []string{"time-by-buffer-with-o-sync"}},
		{"Elapsed_Time_by_Buffer_Size_per_FS", withZoomed("elapsed-by-buffer-per-file-system")},
		{"Elapsed_time_by_FS_per_Buffer_Size", withZoomed("elapsed-by-file-system-per-buffer")},
		{"Total_CPU_Time_by_Buffer_Size_per_FS", withZoomed("total-cpu-by-buffer-per-file-system")},
		{"User_CPU_Time_by_Buffer_Size_per_FS", withZoomed("user-cpu-by-buffer-per-file-system")},
		{"System_CPU_Time_by_Buffer_Size_per_FS", withZoomed("system-cpu-by-buffer-per-file-system")},
	} {
		of := Picture{Name: p.name + ".png"}
		for _, name := range p.panels {
			if i := slices.IndexFunc(panels, func(panel Panel) bool { return panel.Name == name }); i >= 0 {
				of.panels = append(of.panels, panels[i])
			}
		}
		if len(of.panels) == len(p.panels) {
			pictures = append(pictures, of)
		}
	}
	return pictures
}

func withZoomed(name string) []string { return []string{name, name + "-zoomed"} }

// PNG returns the picture as an image: two panels side by side, and others below.
func (p Picture) PNG() ([]byte, error) {
	columns := min(len(p.panels), 2)
	rows := (len(p.panels) + columns - 1) / columns
	canvas := vgimg.NewWith(vgimg.UseWH(width*vg.Length(columns), height*vg.Length(rows)), vgimg.UseDPI(dpi))
	all := draw.New(canvas)
	for i, panel := range p.panels {
		corner := vg.Point{X: width * vg.Length(i%columns), Y: height * vg.Length(rows-1-i/columns)}
		all.Rectangle = vg.Rectangle{Min: corner, Max: corner.Add(vg.Point{X: width, Y: height})}
		panel.draw(all)
	}
	var b bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(&b)
	return b.Bytes(), err
}
