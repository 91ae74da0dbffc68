// Package errjoin joins errors without repetitions.
package errjoin

import (
	"errors"
	"reflect"
)

// Join joins the errors, and the errors joined in them, and drops repetitions: a failure of the
// background mostly fails again in Close.
func Join(errs ...error) error {
	said := map[string]bool{}
	var distinct []error
	add := func(err error) {
		if err != nil && !said[err.Error()] {
			said[err.Error()] = true
			distinct = append(distinct, err)
		}
	}
	for _, err := range errs {
		// An error of another type than joined ones may have a text of its own.
		if many, ok := err.(interface{ Unwrap() []error }); ok && reflect.TypeOf(err) == reflect.TypeOf(errors.Join(errors.ErrUnsupported)) {
			for _, one := range many.Unwrap() {
				add(one)
			}
		} else {
			add(err)
		}
	}
	if len(distinct) == 1 {
		return distinct[0]
	}
	return errors.Join(distinct...)
}
