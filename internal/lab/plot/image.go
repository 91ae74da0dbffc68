package plot

import (
	"bytes"
	"fmt"
	"html"

	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

const dpi = 150 // of a PNG

// SVG returns the panel as a document. It has no fonts in it. It names fonts that are as
// wide as the one of its layout.
func (p Panel) SVG() ([]byte, error) {
	canvas := vgsvg.New(width, height)
	p.draw(canvas)
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
	p.draw(canvas)
	var b bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(&b)
	return b.Bytes(), err
}
