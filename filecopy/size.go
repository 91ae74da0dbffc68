package filecopy

import "fmt"

// rough returns a size in a readable unit, such as 9.5 MiB.
func rough(bytes int64) string {
	value, unit := float64(bytes), -1
	for value >= 1023.5 && unit < len(binaryUnits)-1 {
		value /= 1024
		unit++
	}
	switch {
	case unit < 0:
		return fmt.Sprintf("%d B", bytes)
	case value < 9.95:
		return fmt.Sprintf("%.1f %s", value, binaryUnits[unit])
	}
	return fmt.Sprintf("%.0f %s", value, binaryUnits[unit])
}

var binaryUnits = [...]string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// tooLarge returns the needed and the free size as texts. If these would be equal, both are in
// bytes.
func tooLarge(asked, free int64) (askedText, freeText string) {
	askedText, freeText = rough(asked), rough(free)
	if askedText == freeText {
		return fmt.Sprintf("%d B", asked), fmt.Sprintf("%d B", free)
	}
	return askedText, freeText
}
