package rset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset"
)

// What goes over hosts one by one has a limit, and what does not goes over ranges.
func TestManyHostsOnFewRanges(t *testing.T) {
	const text = `{"version":1,"execution":{"R_lite":[{"rank":"0-16777215","children":{"core":"0-1"}}],"nodelist":["h[0-16777215]"],"properties":{"p":"0,5-16777215"}}}`
	r := parse(t, text)
	_, err := r.Rerank(r.Nodelist())
	require.ErrorIs(t, err, rset.ErrLimit)

	part, err := r.Restrict(idset.Range(3, 16777214))
	require.NoError(t, err)
	require.Equal(t, "h[3-16777214]", part.Nodelist().String())
	require.Equal(t, "5-16777214", part.Property("p").String())
	require.NoError(t, part.Check())

	properties := strings.Repeat(`,"#":"0-99999"`, 50)
	for i := range 50 {
		properties = strings.Replace(properties, "#", fmt.Sprint("p", i), 1)
	}
	r = parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"0-99999","children":{"core":"0-1"}}],"nodelist":["h[0-99999]"],"properties":{`+properties[1:]+`}}}`)
	_, err = r.Rerank(r.Nodelist())
	require.EqualError(t, err, "rset: limit exceeded: 4194305 ranks of properties, at most 4194304 are allowed")
}
