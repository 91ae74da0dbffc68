package stat

import "math"

// studentQuantile returns the t for which the given part of Student's distribution lies between -t and t.
func studentQuantile(freedom int, part float64) float64 {
	low, high := 0.0, 1.0
	for studentWithin(freedom, high) < part {
		high *= 2
	}
	for range 100 {
		middle := (low + high) / 2
		if studentWithin(freedom, middle) < part {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// studentWithin returns the part of Student's distribution between -t and t, by the finite sum for a whole
// number of degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
func studentWithin(freedom int, t float64) float64 {
	angle := math.Atan(t / math.Sqrt(float64(freedom)))
	sin, cos := math.Sincos(angle)
	odd := freedom%2 == 1
	term, sum := 1.0, 0.0
	if odd {
		term = cos
	}
	for k := freedom%2 + 2; k <= freedom; k += 2 { // freedom/2 terms
		sum += term
		term *= cos * cos * float64(k-1) / float64(k)
	}
	if odd {
		return 2 / math.Pi * (angle + sin*sum)
	}
	return sin * sum
}
