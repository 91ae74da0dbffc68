//go:build !linux

package sys

import "errors"

type readAdviceState struct{}

func (a *ReadAdvice) init() { a.readAdviceState = readAdviceState{} }

// DontNeed is not supported.
func (a *ReadAdvice) DontNeed(offset, length int64) error { return errors.ErrUnsupported }
