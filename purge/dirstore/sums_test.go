package dirstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/purge/dirstore"
)

// told returns what a store has, or what is wrong with it.
func told(d *disk) (text string, err error) {
	s, err := dirstore.Open(".", (&disk{root: d.root.clone()}).options())
	if err != nil {
		return "", err
	}
	for j, err := range s.Jobs() {
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf("%v %d %s %s %s\n", j.ID, j.Torn, j.Eventlog, j.Jobspec, j.R)
	}
	return text, s.Close()
}

// files returns the files of a disk by name.
func (n *node) files(name string, out map[string]*node) map[string]*node {
	if !n.dir {
		out[name] = n
	}
	for base, below := range n.names {
		below.files(name+"/"+base, out)
	}
	return out
}

// filled returns a disk whose store has some of everything.
func filled(t *testing.T) (*disk, *dirstore.Store) {
	d := newDisk()
	s := d.create(t)
	bare := job(2)
	bare.Jobspec, bare.R = nil, nil
	require.NoError(t, s.Add(job(1)))
	require.NoError(t, s.Add(bare))
	require.NoError(t, s.Append(1, line("memo")))
	require.NoError(t, s.PutR(2, []byte(`{"R":"first"}`)))
	require.NoError(t, s.PutR(1, []byte(`{"R":"again"}`)))
	return d, s
}

// TestAFlippedBitIsNoticed flips a bit of each byte of each file of a store. Deep, it flips
// each bit.
func TestAFlippedBitIsNoticed(t *testing.T) {
	d, _ := filled(t)
	d.crash()
	want, err := told(d)
	require.NoError(t, err)
	flips, refused, step := 0, 0, 7
	if deep {
		step = 1
	}
	for name, f := range d.root.files("", make(map[string]*node)) {
		if strings.HasPrefix(name, "/ballast-") {
			continue
		}
		for bit := 0; bit < len(f.cache)*8; bit += step {
			f.flip(bit)
			got, err := told(d)
			if err != nil {
				refused++
				require.ErrorIs(t, err, dirstore.ErrDamaged)
			} else {
				require.Equal(t, want, got, "%s: bit %d", name, bit)
			}
			f.flip(bit)
			flips++
		}
	}
	t.Logf("%d of %d flips were refused; the others change nothing that is read", refused, flips)
	require.Greater(t, refused*step, 1500)
}

func TestAFileOfAJobThatIsCutIsNoticed(t *testing.T) {
	d, s := filled(t)
	for _, key := range []string{"eventlog", "jobspec", "R"} {
		_, _, f := d.find("job.0000.0000.0000.0001/" + key)
		whole := f.cache
		for n := range whole {
			f.cache = whole[:n]
			_, err := s.Read(1)
			require.ErrorIs(t, err, dirstore.ErrDamaged)
			require.ErrorContains(t, err, "dirstore: ƒ2: "+key+": damaged: the check digits do not match")
		}
		f.cache = whole
		dir, _, _ := d.find("job.0000.0000.0000.0001/" + key)
		delete(dir.names, key)
		_, err := s.Read(1)
		require.ErrorIs(t, err, dirstore.ErrDamaged)
		dir.names[key] = f
	}
	_, err := s.Read(1)
	require.NoError(t, err)
}

// What is whole of a job comes with the error, as the nodes that it holds are still its own.
func TestADamagedFileHidesNoOtherFileOfItsJob(t *testing.T) {
	d, s := filled(t)
	whole, err := s.Read(1)
	require.NoError(t, err)
	for _, key := range []string{"eventlog", "jobspec", "R"} {
		want := whole
		switch key {
		case "eventlog":
			want.Eventlog = nil
		case "jobspec":
			want.Jobspec = nil
		case "R":
			want.R = nil
		}
		dir, _, f := d.find("job.0000.0000.0000.0001/" + key)
		for name, harm := range map[string]func() (undo func()){
			"a flipped bit": func() func() {
				f.flip(len(f.cache) / 2 * 8)
				return func() { f.flip(len(f.cache) / 2 * 8) }
			},
			"a file that is not there": func() func() {
				delete(dir.names, key)
				return func() { dir.names[key] = f }
			},
			"a folder in its place": func() func() {
				dir.names[key] = newDir()
				return func() { dir.names[key] = f }
			},
		} {
			undo := harm()
			got, err := s.Read(1)
			require.ErrorIs(t, err, dirstore.ErrDamaged, name)
			require.Equal(t, want, got, "%s: %s", key, name)
			for j, err := range s.Jobs() {
				if j.ID == 1 {
					require.ErrorIs(t, err, dirstore.ErrDamaged)
					require.Equal(t, want, j, "%s: %s", key, name)
				}
			}
			undo()
		}
	}
	dir, _, _ := d.find("job.0000.0000.0000.0001/R")
	dir.names["crc32c"] = newDir()
	got, err := s.Read(1)
	require.ErrorIs(t, err, dirstore.ErrDamaged)
	require.Equal(t, [][]byte{whole.Eventlog, whole.Jobspec, whole.R}, [][]byte{got.Eventlog, got.Jobspec, got.R}, "nothing tells that they are damaged")
}

func TestNothingIsAppendedToALogThatIsDamaged(t *testing.T) {
	d, s := filled(t)
	_, _, f := d.find("job.0000.0000.0000.0001/eventlog")
	for _, harm := range []func(text []byte) []byte{
		func(text []byte) []byte { return append(text[:len(text)-1], '\v') }, // Repair would cut off a line
		func(text []byte) []byte { return slices.Insert(text, 13, '1') },
	} {
		before := f.cache
		harmed := harm(slices.Clone(before))
		f.cache = harmed
		require.EqualError(t, s.Append(1, nil),
			"dirstore: append job.0000.0000.0000.0001/eventlog: eventlog: damaged: the check digits do not match")
		require.Equal(t, harmed, f.cache)
		f.cache = before
	}
	require.NoError(t, s.Append(1, line("memo")))
}

// A log that had no check digits gets them when it is appended to, for all of it.
func TestALogGetsItsCheckDigitsWhenItIsAppendedTo(t *testing.T) {
	d, s := filled(t)
	dir, _, f := d.find("job.0000.0000.0000.0001/eventlog")
	delete(dir.names, "crc32c")
	flip := func() error {
		bit := (len(f.cache) - 5) * 8
		f.flip(bit)
		defer f.flip(bit)
		_, err := s.Read(1)
		return err
	}
	require.NoError(t, flip())
	require.NoError(t, s.Append(1, nil))
	require.ErrorIs(t, flip(), dirstore.ErrDamaged)
}

// A process was killed while it wrote check digits: the disk has those of before, and they
// must not come back beside another R, wherever the machine crashes.
func TestCheckDigitsThatAreTornDoNotComeBack(t *testing.T) {
	for at := 1; at < 60; at++ {
		d, _ := filled(t)
		d.crash()
		s := d.open(t)
		_, _, sums := d.find("job.0000.0000.0000.0001/crc32c")
		sums.cache, sums.patched = append(slices.Clone(sums.cache[:20]), make([]byte, len(sums.cache)-20)...), true
		d.coin = func() bool { return false }
		if at%2 == 0 {
			require.NoError(t, s.Append(1, line("memo")))
		}
		d.calls, d.failAt, d.down = nil, at/2+1, true
		_ = s.PutR(1, []byte("new"))
		d.crash()
		j, err := d.open(t).Read(1)
		require.NoError(t, err)
		require.Contains(t, []string{`{"R":"again"}`, "new"}, string(j.R))
	}
}
