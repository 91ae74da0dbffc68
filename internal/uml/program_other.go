//go:build !linux

package uml

import "errors"

func thisProgram() ([]packed, error) { return nil, errors.ErrUnsupported }
