//go:build !linux

package main

func fillDisk(string) (lift, unmount func() error, err error) {
	return nil, nil, &unsupported{"a disk to fill is for Linux"}
}
