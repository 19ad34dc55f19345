package service

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A scheduler that cannot be told what a job has freed takes R as it is in the store: it would
// never get back what was freed before. Housekeeping of such jobs ends, as in flux-core.
func TestHelloEndsPartialHousekeeping(t *testing.T) {
	for name, tt := range map[string]struct {
		hello string
		ends  bool
	}{
		"partial-ok":    {`{"partial-ok":true}`, false},
		"no partial-ok": {`{}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := actions(false, false, true)
			zero := fsd.Duration(0)
			cfg.Manager.Actions.Housekeeping.ReleaseAfter = &zero
			cfg.Manager.Actions.Housekeeping.OnFailure = jobstate.OnFailureRelease
			var c *cluster
			cfg.Lookup = func(id jobid.ID) (s Stored, err error) {
				for _, r := range c.records {
					if r.Job == id && r.Kind == joblife.RecordR {
						s.R = r.Data
					}
				}
				return s, nil
			}
			c = newCluster(t, cfg)
			c.submit(16, "0-3")
			c.submit(17, "4-5") // nothing of it was freed
			c.run(16)
			c.run(17)
			for _, p := range c.commands()[:3] {
				c.end(p, 0)
			}
			last := c.commands()[0]
			require.Equal(t, 3, last.rank)

			told := func() (list []string) {
				c.answers = nil
				c.Request(c.now, owner("sched-hello", tt.hello))
				c.pump()
				for _, a := range c.answers[:len(c.answers)-1] {
					var m struct{ ID jobid.ID }
					text, ok := a.Payload.(json.RawMessage)
					require.True(t, ok)
					require.NoError(t, json.Unmarshal(text, &m))
					list = append(list, m.ID.String())
				}
				require.Equal(t, errno.NoData, c.answers[len(c.answers)-1].Errnum)
				return list
			}
			frees := 0
			c.free = func(string) { frees++ }
			if !tt.ends {
				require.Equal(t, []string{"ƒH", "ƒJ"}, told())
				require.Empty(t, c.kills)
				require.Empty(t, c.logged)
				require.Equal(t, []string{"16 housekeeping 3", "17 housekeeping 4-5"}, c.holders())
				return
			}
			require.Equal(t, []string{"ƒJ"}, told())
			require.Equal(t, "housekeeping: n3 (rank 3) from ƒH will be terminated because"+
				" scheduler does not support restart with partially released resources", c.logged[0])
			require.Equal(t, 15, last.signal)
			require.Len(t, c.kills, 1)
			require.Equal(t, []string{"17 housekeeping 4-5"}, c.holders())
			c.do(joblife.SchedReady{})
			c.end(last, 15)
			c.pump()
			require.Zero(t, frees, "the scheduler does not know the job")
			require.Empty(t, c.drained)
			c.endAll()
			require.NotZero(t, frees)
			c.gone(16)
			c.gone(17)
		})
	}
}
