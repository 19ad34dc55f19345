package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/joblife/joblife"
	power "github.com/joblife/joblife/internal/disk"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// The power fails at any call to the system under -store dir. The file system writes what is
// appended to a file in order.
func TestAttackByPowerCuts(t *testing.T) {
	open := func(dir string) (*dirDisk, error) {
		return openDir(filepath.Join(dir, "a", "store"), func(string, ...any) {})
	}
	cuts := power.CutsOf(10, open, (*dirDisk).has, (*dirDisk).changeOne)
	cuts.Ordered, cuts.Soak = true, os.Getenv("JOBLIFE_SOAK")
	cuts.Run(t)
}

// has returns what a restart finds, and what is put aside.
func (d *dirDisk) has() (string, error) {
	var list, jobs []string
	mark := ""
	for r, err := range d.Records() {
		text := fmt.Sprintf("%d %v %s", r.Job, r.Kind, r.Data)
		switch {
		case err != nil:
			return "", err
		case r.Kind == joblife.RecordInactive:
			return "", errors.New(text)
		case r.Kind == joblife.RecordWatermark:
			mark = max(mark, text)
		case r.Kind == joblife.RecordTombstone && len(r.Data) == 0: // until a restart there are both
			list = slices.DeleteFunc(list, func(s string) bool { return strings.HasPrefix(s, fmt.Sprintf("%d %v ", r.Job, r.Kind)) })
		case r.Kind == joblife.RecordTombstone:
			list = append(list, text)
		default:
			jobs = append(jobs, text)
		}
	}
	aside, err := os.ReadDir(filepath.Join(d.path, asideName))
	for _, e := range aside {
		log, err := os.ReadFile(filepath.Join(d.path, asideName, e.Name(), "eventlog"))
		if err != nil {
			return "", err
		}
		jobs = append(jobs, e.Name()+" "+string(log))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return strings.Join(slices.Concat([]string{mark}, list, jobs), "\n"), err
}

// changeOne makes a change that is there as a whole or not at all.
func (d *dirDisk) changeOne(_ string, random *rand.Rand) error {
	id := jobid.ID(1 + random.IntN(4))
	event := fmt.Appendf(nil, `{"timestamp":1.0,"name":"x%d"}`+"\n", random.IntN(1e9))
	_, err := d.Read(id)
	if errors.Is(err, fs.ErrNotExist) {
		return d.Append([]joblife.Record{{Job: id, Kind: joblife.RecordJobspec, Data: []byte("{}")}, {Job: id, Kind: joblife.RecordEvent, Data: event}})
	}
	mark := func(id jobid.ID) error {
		return d.Append([]joblife.Record{{Time: 1, Kind: joblife.RecordWatermark, Data: purge.AppendWatermark(nil, id)}})
	}
	switch random.IntN(8) {
	case 0:
		_, err = d.Unlink(context.Background(), []jobid.ID{id})
	case 1:
		const great = 1e9 // so that PutAside's changes nothing
		text, err := d.has()
		if err != nil {
			return err
		}
		if !strings.Contains(text, string(purge.AppendWatermark(nil, great))) {
			return mark(great)
		}
		return d.PutAside(id)
	case 2:
		err = d.Append([]joblife.Record{{Job: id, Kind: joblife.RecordR, Data: fmt.Appendf(nil, `{"R":%s}`, event)}})
	case 3:
		err = mark(jobid.ID(random.IntN(1e6)))
	case 4:
		err = d.Append([]joblife.Record{{Time: 1, Job: 77, Kind: joblife.RecordTombstone, Data: event[:len(event)-1]}})
	case 5:
		err = d.Append([]joblife.Record{{Time: 1, Job: 77, Kind: joblife.RecordTombstone}})
	default:
		err = d.Append([]joblife.Record{{Job: id, Kind: joblife.RecordEvent, Data: event}})
	}
	return err
}
