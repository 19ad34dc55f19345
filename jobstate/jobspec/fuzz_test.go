package jobspec_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobspec"
)

// requireSpec requires what holds for every Spec.
func requireSpec(t require.TestingT, s *jobspec.Spec) {
	canonical := print(t, s)
	again, err := jobspec.Parse([]byte(canonical))
	require.NoError(t, err, canonical)
	require.Equal(t, canonical, print(t, again))
	require.Equal(t, s.Counts(), again.Counts())
	require.Equal(t, s.Duration(), again.Duration())
	require.Equal(t, s.Name(), again.Name())
	require.Equal(t, s.Command(), again.Command())
	require.GreaterOrEqual(t, s.Duration(), time.Duration(0))

	n := 0
	for i, v := range s.Vertices() {
		n++
		require.Less(t, v.Parent, i)
		require.False(t, v.Count.IsZero())
		requireRoundTrip(t, v.Count)
	}
	require.Positive(t, n)
	require.NotEmpty(t, s.Command())
	for d := range s.Dependencies() {
		require.True(t, json.Valid(d.JSON))
	}
	c := s.Counts()
	got := s.CountsOn(jobspec.Resources{Nodes: 1, Cores: 2, GPUs: 3, Slots: 4})
	require.Equal(t, []jobspec.Quantity{jobspec.Known(1), jobspec.Known(2), jobspec.Known(3)}, []jobspec.Quantity{got.Nodes, got.Cores, got.GPUs})
	for _, pair := range [][2]jobspec.Quantity{{c.Slots, got.Slots}, {c.Tasks, got.Tasks}} {
		if _, known := pair[0].Value(); known {
			require.Equal(t, pair[0], pair[1], "resources do not change what is known without them")
		}
	}
	if shape, err := s.Shape(); err == nil {
		require.False(t, shape.Slots.IsZero() || shape.Cores.IsZero())
	}
}

// requireTyped requires that an error is one about a text, and stays short.
func requireTyped(t require.TestingT, err error) {
	path, _ := jobspec.Position(err)
	require.NotEqual(t, "none", path)
	require.Less(t, len(err.Error()), 400)
	require.False(t, strings.ContainsAny(err.Error(), "\n\x00\x1b"), "%q", err.Error())
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(text("", "", "")))
	f.Add([]byte(system(`,"dependencies":[{"scheme":"after","value":"f1"}],"constraints":{"properties":["a"]},"job":{"name":"n"}`)))
	f.Add([]byte(text(`[{"type":"node","count":{"min":2,"max":8,"operator":"*","operand":2},"exclusive":true,"with":`+slotOfCore+`}]`,
		`[{"command":["a"],"slot":"task","count":{"per_resource":{"type":"core","count":2}}}]`, "")))
	f.Add([]byte(text(`[{"type":"slot","count":"1,3-4","label":"task","with":[{"type":"core","count":"2+"}]}]`, "", "")))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := slices.Clone(b)
		s, err := jobspec.Parse(b)
		require.Equal(t, before, b, "the input is not touched")
		if err != nil {
			require.Nil(t, s)
			requireTyped(t, err)
			return
		}
		requireSpec(t, s)
		require.JSONEq(t, string(b), print(t, s))
	})
}

func FuzzUpdate(f *testing.F) {
	f.Add("attributes.system.duration", []byte(`3600`))
	f.Add("attributes.system.job.name", []byte(`"n"`))
	f.Add("attributes.user.a.b.c", []byte(`{"k":[1,2.50]}`))
	f.Add("attributes.system", []byte(`{"duration":1}`))
	f.Add("attributes..x", []byte(`null`))
	base, err := jobspec.Parse([]byte(system(`,"x":{"n":7}`)))
	if err != nil {
		f.Fatal(err)
	}
	unchanged := print(f, base)
	f.Fuzz(func(t *testing.T, path string, value []byte) {
		s, err := base.Update(path, value)
		require.Equal(t, unchanged, print(t, base))
		if err != nil {
			require.Nil(t, s)
			requireTyped(t, err)
		} else {
			requireSpec(t, s)
			require.Same(t, base, s.Original())
			got, ok := s.Lookup(path)
			require.True(t, ok)
			require.JSONEq(t, string(value), string(got))
			again, err := s.Update(path, value)
			require.NoError(t, err)
			require.Equal(t, print(t, s), print(t, again), "an update that repeats changes nothing")
		}
	})
}

func FuzzCount(f *testing.F) {
	for _, in := range []string{"4", "2-8:2:*", "1,4-6", "[2+]", "2+:2:^"} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		c, err := jobspec.ParseCount(in)
		if err != nil {
			require.True(t, c.IsZero())
			requireTyped(t, err)
			return
		}
		requireRoundTrip(t, c)
		first, ok := c.Floor(c.Min())
		require.True(t, ok)
		require.Equal(t, c.Min(), first)
		last, ok := c.Floor(1<<63 - 1)
		require.True(t, ok)
		require.True(t, c.Contains(last))
		require.False(t, c.Contains(last+1))
	})
}
