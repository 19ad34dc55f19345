package boltstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/internal/disk"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/boltstore"
)

// The power fails at any call that bbolt makes, or we: each transaction is there as a whole
// or not at all, and each that was acknowledged is there.
func TestAttackByPowerCuts(t *testing.T) {
	open := func(dir string) (*boltstore.Store, error) { return boltstore.Open(filepath.Join(dir, "jobs.db")) }
	cuts := disk.CutsOf(19, open, has, change)
	cuts.Sector, cuts.Soak = 512, os.Getenv("JOBLIFE_SOAK")
	cuts.Run(t)
}

// has returns what a store has, in short.
func has(s *boltstore.Store) (text string, err error) {
	for r, err := range s.Records() {
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf("%d %v %d %.40s\n", r.Job, r.Kind, len(r.Data), r.Data)
	}
	return text, nil
}

func change(s *boltstore.Store, text string, random *rand.Rand) (err error) {
	id := jobid.ID(random.IntN(8))
	if strings.Contains(text, fmt.Sprintf("%d unlinked", id)) {
		id += 8 // it may not come back
	}
	switch random.IntN(6) {
	case 0:
		_, err = s.Unlink(context.Background(), []jobid.ID{id, id + 1})
	case 1:
		err = s.Prepare(context.Background(), purge.Plan{Watermark: id, Tombstones: []jobstate.Summary{{ID: id, Inactive: 1}}})
	default:
		list := job(id, fmt.Appendf(nil, `{"timestamp":%d,"name":"x"}`+"\n", random.IntN(1e6)), []byte(strings.Repeat("j", random.IntN(9000))), nil)
		if random.IntN(10) == 0 { // the file has to grow
			list = append(list, joblife.Record{Job: id, Kind: joblife.RecordR, Data: []byte(strings.Repeat("r", 30_000+random.IntN(50_000)))})
		}
		err = s.Append(slices.Concat(list, job(id+1, []byte(cleanLine), nil, nil)))
	}
	return err
}
