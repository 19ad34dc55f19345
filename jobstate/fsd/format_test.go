package fsd_test

import (
	"math"
	"testing"

	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/stretchr/testify/require"
)

func TestFormatRoundsAndChoosesTheUnitFirst(t *testing.T) {
	for _, tt := range []struct {
		seconds float64
		digits  int
		want    string
	}{
		{0, 6, "0s"}, {5e-324, 6, "4.94066e-321ms"}, {0.0999999, 6, "99.9999ms"}, {0.1, 6, "0.1s"}, {59.9999999, 6, "60s"},
		{59.9999999, 10, "59.9999999s"}, {60, 6, "1m"}, {3599.9999999, 6, "60m"}, {3600, 6, "1h"}, {86399.9999, 6, "24h"}, {86400, 6, "1d"},
		{86400e6, 6, "1e+06d"}, {86400e6, 7, "1000000d"}, {62, 6, "1.03333m"}, {62, 2, "1m"}, {869, 1, "1e+01m"}, {869, 0, "1e+01m"},
		{869, -5, "1e+01m"}, {0.1, 17, "0.10000000000000001s"}, {0.1, 18, "0.10000000000000001s"}, {0.1, math.MaxInt32, "0.10000000000000001s"},
		{math.MaxFloat64, 6, "2.08066e+303d"}, {math.Inf(1), 1, "infinity"},
	} {
		got := fsd.AppendFormat([]byte("before"), tt.seconds, tt.digits)
		require.Equal(t, "before"+tt.want, string(got), "%g with %d digits", tt.seconds, tt.digits)
	}
}
