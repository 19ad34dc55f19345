package service

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// TestLogIgnore: lines of prologs and epilogs that match a pattern are not logged, nor are
// those with nothing in them. The control lines among them still count.
func TestLogIgnore(t *testing.T) {
	cfg := actions(true, true, false)
	cfg.LogIgnore = []*regexp.Regexp{regexp.MustCompile("^foo:.*"), regexp.MustCompile("^bar:"), regexp.MustCompile(perilog.ControlPrefix)}
	c := newCluster(t, cfg)
	c.submit(16, "0-1")
	c.end(c.commands()[0], 0, "foo: whee!\nbar: woo!\nbaz: important!\n \t\n", "a bar: too\n")
	c.end(c.commands()[0], 0, perilog.ControlPrefix+" failed")
	require.Equal(t, []string{
		"ƒH: prolog: n0 (rank 0): stdout: baz: important!",
		"ƒH: prolog: n0 (rank 0): stdout: a bar: too",
	}, c.logged[:2])
	require.NotContains(t, c.logged, "ƒH: prolog: n1 (rank 1): stdout: "+perilog.ControlPrefix+" failed")
	c.logged = nil
	c.end(c.commands()[0], 0, "foo: whee!\n")
	require.Empty(t, c.logged)
}

// The words in the log of housekeeping are those of flux-core. What it writes is logged as it
// is.
func TestLogOfHousekeeping(t *testing.T) {
	cfg := actions(false, false, true)
	cfg.LogIgnore = []*regexp.Regexp{regexp.MustCompile("foo")}
	cfg.Manager.Actions.Housekeeping.OnFailure = jobstate.OnFailureRelease // as conf has it
	cfg.Environ = append(cfg.Environ, "FLUX_F58_FORCE_ASCII=1")
	c := ran(t, cfg, "0-2")
	list := c.commands()
	c.end(list[0], 1<<8, "foo\n\n")
	c.end(list[1], 15)
	c.tell(list[2], 2, "", "error launching process: No such file or directory")
	c.pump()
	require.Equal(t, []string{
		"housekeeping: n0 (rank 0) fH: foo", "housekeeping: n0 (rank 0) fH: ",
		"housekeeping: n0 (rank 0) fH: nonzero exit code",
		"housekeeping: n1 (rank 1) fH: Terminated",
		"housekeeping: n2 (rank 2) fH: error launching process: No such file or directory",
	}, c.logged[:5])
	require.Empty(t, c.drained)
	c.gone(16)
}
