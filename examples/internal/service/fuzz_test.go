package service

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
)

// No request makes the service panic, and one that fails changes nothing.
func FuzzRequest(f *testing.F) {
	for _, r := range slices.Concat(rows...) {
		f.Add(r.topic, r.payload, uint32(ownGuest), uint32(roleUser))
		f.Add(r.topic, r.payload, uint32(ownUser), uint32(roleOwner))
	}
	f.Fuzz(func(t *testing.T, topic, payload string, user, rolemask uint32) {
		w := newWorld(t, joblife.Config{})
		out := w.drive(by(user, rolemask, topic, payload))
		for _, a := range out.Answers {
			_, err := json.Marshal(a.Payload)
			require.NoError(t, err)
			if a.Errnum != 0 {
				require.Nil(t, a.Payload)
				require.Empty(t, out.Append)
				require.Empty(t, out.Events)
			}
		}
		if rolemask&(roleOwner|roleUser) == 0 {
			require.NotZero(t, out.Answers[0].Errnum)
		}
	})
}
