//go:build !linux

package sys

import "errors"

type readAdviceState struct{}

func (a *ReadAdvice) init() { a.readAdviceState = readAdviceState{} }

// DontNeed is not to be had here.
func (a *ReadAdvice) DontNeed(offset, length int64) error { return errors.ErrUnsupported }
