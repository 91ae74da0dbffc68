package zap

import (
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rotate"
)

// TestEachKeyIsItsOption has another value for each.
func TestEachKeyIsItsOption(t *testing.T) {
	values, err := url.ParseQuery("policy=sync%3Dgroup&size=1MiB&backups=2&age=3h&total=4MiB&interval=5h&at=00:00&at=12:00&compress=true&perm=640")
	if err != nil {
		t.Fatal(err)
	}
	want := rotate.Options{
		MaxSize: holdfast.MiB, MaxBackups: 2, MaxAge: 3 * time.Hour,
		MaxTotal: 4 * holdfast.MiB, RotationInterval: 5 * time.Hour, RotateAt: []string{"00:00", "12:00"}, Compress: true, Perm: 0o640,
	}
	if want.Policy, err = holdfast.ParsePolicy("sync=group"); err != nil {
		t.Fatal(err)
	}
	if got, err := options(values); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}
