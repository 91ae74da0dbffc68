// Package zap gives zap a rotating log, by a URL in its configuration:
//
//	holdfast:///var/log/app.log?policy=periodic=1s&size=100MiB&backups=7&compress=true
//
// A [rotate.File] is a zapcore.WriteSyncer. This package is for programs that configure zap's
// outputs as text. zap syncs after each record above the level Error, so Fatal and Panic lose
// nothing.
package zap

import (
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rotate"
	"go.uber.org/zap"
)

// Register registers outputs with the scheme holdfast for zap.Config and zap.Open. onError gets
// each failure; it may be nil. The keys of the URL are policy, size, backups, age, total, interval,
// at, compress and perm: see [rotate.Options].
func Register(onError func(*rotate.Error)) error {
	return zap.RegisterSink("holdfast", func(u *url.URL) (zap.Sink, error) {
		values, err := url.ParseQuery(u.RawQuery) // Query drops malformed pairs
		var o rotate.Options
		if err == nil {
			o, err = options(values)
		}
		if err != nil {
			return nil, fmt.Errorf("holdfast: %s: %w", u, err)
		}
		o.OnError = onError
		return rotate.Open(u.Host+u.Path, o)
	})
}

func options(values url.Values) (o rotate.Options, err error) {
	for key, all := range values {
		value := all[0]
		if len(all) > 1 && key != "at" {
			return o, fmt.Errorf("%s is given %d times; give it once", key, len(all))
		}
		switch key {
		case "policy":
			o.Policy, err = holdfast.ParsePolicy(value)
		case "size":
			o.MaxSize, err = holdfast.ParseSize(value)
		case "total":
			o.MaxTotal, err = holdfast.ParseSize(value)
		case "backups":
			o.MaxBackups, err = strconv.Atoi(value)
		case "age":
			o.MaxAge, err = time.ParseDuration(value)
		case "interval":
			o.RotationInterval, err = time.ParseDuration(value)
		case "at":
			o.RotateAt = all
		case "compress":
			o.Compress, err = strconv.ParseBool(value)
		case "perm":
			var perm uint64
			perm, err = strconv.ParseUint(value, 8, 9)
			o.Perm = fs.FileMode(perm)
		default:
			err = fmt.Errorf("it is no key; use policy, size, backups, age, total, interval, at, compress or perm")
		}
		if err != nil {
			return o, fmt.Errorf("%s=%q: %w", key, value, err)
		}
	}
	return o, nil
}
