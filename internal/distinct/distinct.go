// Package distinct joins errors without saying the same thing twice.
package distinct

import (
	"errors"
	"reflect"
)

// joined is the type of joined errors. An error of another type may have a text of its own.
var joined = reflect.TypeOf(errors.Join(errors.ErrUnsupported))

// Join joins the errors, and those that were joined in them, and drops repetitions: what
// failed in the background mostly fails again in Close.
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
		if reflect.TypeOf(err) == joined {
			for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
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
