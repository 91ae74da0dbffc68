//go:build !linux

package files

func fillDisk(string) (lift, unmount func() error, err error) {
	return nil, nil, &unsupported{"a disk to fill is for Linux"}
}
