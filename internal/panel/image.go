package panel

import (
	"bytes"

	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

const dpi = 150 // of a PNG

// SVG returns the panel as a document. It names fonts that are as wide as the one it was
// laid out with, and has none in it.
func (p Panel) SVG() ([]byte, error) {
	canvas := vgsvg.New(width, height)
	p.draw(canvas)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

// PNG returns the panel as an image.
func (p Panel) PNG() ([]byte, error) {
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
	p.draw(canvas)
	var b bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(&b)
	return b.Bytes(), err
}
