package boltstore_test

import (
	"context"
	"errors"
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
	disk.Cuts{Sector: 512, Soak: os.Getenv("JOBLIFE_SOAK"), Work: work, Read: has}.Run(t)
}

// has returns what a store has, in short.
func has(dir string) (text string, err error) {
	s, err := boltstore.Open(filepath.Join(dir, "jobs.db"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return all(s)
}

func all(s *boltstore.Store) (text string, err error) {
	for r, err := range s.Records() {
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf("%d %v %d %.40s\n", r.Job, r.Kind, len(r.Data), r.Data)
	}
	return text, nil
}

// work changes a store as a seed says.
func work(dir string, seed uint64, say func(string)) error {
	s, err := boltstore.Open(filepath.Join(dir, "jobs.db"))
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 1))
	for n := range 20 {
		text, err := all(s)
		if err != nil {
			return err
		}
		if say(text); n == 19 {
			break
		}
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
		if err != nil {
			return err
		}
	}
	return s.Close()
}
