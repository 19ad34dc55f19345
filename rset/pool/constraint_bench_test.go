package pool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/rset/pool"
)

// constrained is a request with every operator in it.
func constrained(t testing.TB) *pool.Request {
	q, err := pool.NewRequest(specOf(t, shape("slot", "1", vertex("core", "1")),
		`{"and":[{"or":[{"properties":["foo"]},{"properties":["bar","^n7"]}]},{"hostlist":["n[0-9000]","n9002"]},{"not":[{"ranks":["5-6"]}]}]}`))
	require.NoError(t, err)
	return q
}

// A constraint of seven terms on ranks with equal groups, and on ranks of which
// no two neighbours have the same property and hosts have no order.
func BenchmarkEligible(b *testing.B) {
	q := constrained(b)
	for _, n := range []uint32{64, 4096, 16384, 100_000} {
		for name, scattered := range map[string]bool{"equal": false, "different": true} {
			f := bigFake(n, scattered)
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f.Eligible(q)
				}
			})
		}
	}
}

func BenchmarkNewRequest(b *testing.B) {
	hosts := make([]string, 4096)
	for i := range hosts {
		hosts[i] = fmt.Sprintf(`"n%d"`, i*7919%16384)
	}
	for name, constraints := range map[string]string{
		"plain":       "",
		"constrained": `{"and":[{"properties":["ssd"]},{"hostlist":["n[0-9000]"]}]}`,
		"4096-hosts":  `{"hostlist":[` + strings.Join(hosts, ",") + `]}`,
	} {
		s := specOf(b, shape("node", "4", vertex("slot", "2", vertex("core", "4"), vertex("gpu", "1"))), constraints)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := pool.NewRequest(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestWhatConstraintsMayAllocate(t *testing.T) {
	race.Skip(t)
	q := constrained(t)
	for scattered, want := range map[bool]float64{false: 32, true: 136} {
		f := bigFake(16384, scattered)
		require.LessOrEqual(t, testing.AllocsPerRun(3, func() { f.Eligible(q) }), want)
	}
	plain, err := pool.NewRequest(specOf(t, shape("slot", "1", vertex("core", "1")), ""))
	require.NoError(t, err)
	f := bigFake(64, false)
	require.Zero(t, testing.AllocsPerRun(3, func() { f.Eligible(plain) }))
	s := specOf(t, shape("node", "4", vertex("slot", "2", vertex("core", "4"), vertex("gpu", "1"))), "")
	require.LessOrEqual(t, testing.AllocsPerRun(3, func() { _, _ = pool.NewRequest(s) }), 20.0)
}
