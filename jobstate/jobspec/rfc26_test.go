package jobspec_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobspec"
)

func TestRFC26DependenciesHaveSchemeAndValue(t *testing.T) {
	for dependency, want := range map[string]struct{ path, points string }{
		`7`:                            {"", "7"},
		`{"value":"x"}`:                {".scheme", "{"},
		`{"scheme":"after"}`:           {".value", "{"},
		`{"scheme":1,"value":"x"}`:     {".scheme", "1"},
		`{"scheme":"a","value":12345}`: {".value", "12345"},
	} {
		in := system(`,"dependencies":[{"scheme":"after","value":"ƒx"},` + dependency + `]`)
		refuse(t, in, anyFault, "attributes.system.dependencies[1]"+want.path, want.points)
	}
}

func TestRFC26DependenciesKeepTheirOrderAndTheKeysOfTheirScheme(t *testing.T) {
	s := parse(t, system(`,"dependencies":[{"scheme":"string","value":"f\u006fo","type":"inout","scope":"user"}, {"value":"ƒ2oLkTLb","scheme":"afterany"}]`))
	got := slices.Collect(s.Dependencies())
	require.Equal(t, []jobspec.Dependency{
		{Scheme: "string", Value: "foo", JSON: []byte(`{"scheme":"string","value":"f\u006fo","type":"inout","scope":"user"}`)},
		{Scheme: "afterany", Value: "ƒ2oLkTLb", JSON: []byte(`{"value":"ƒ2oLkTLb","scheme":"afterany"}`)},
	}, got)
	for d := range s.Dependencies() {
		d.JSON[0] = '!'
		break
	}
	require.Equal(t, got, slices.Collect(s.Dependencies()), "what is yielded is the caller's")
}

func TestRFC26NoDependenciesAreAbsentOrAnEmptyList(t *testing.T) {
	require.Empty(t, slices.Collect(parse(t, text("", "", "")).Dependencies()))
	require.Empty(t, slices.Collect(parse(t, system(`,"dependencies":[]`)).Dependencies()))
}
