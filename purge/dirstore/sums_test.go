package dirstore_test

import (
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/disk"
	"github.com/joblife/joblife/purge/dirstore"
)

// told returns what a store has, or what is wrong with it.
func told(t *testing.T, d *disk.Disk) (text string, err error) {
	for j, err := range openOn(t, d.Clone()).Jobs() {
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf("%v %d %s %s %s\n", j.ID, j.Torn, j.Eventlog, j.Jobspec, j.R)
	}
	return text, nil
}

// filled returns a disk whose store has some of everything.
func filled(t *testing.T) (*disk.Disk, *dirstore.Store) {
	d := newDisk()
	s := createOn(t, d)
	bare := job(2)
	bare.Jobspec, bare.R = nil, nil
	require.NoError(t, s.Add(job(1)))
	require.NoError(t, s.Add(bare))
	require.NoError(t, s.Append(1, line("memo")))
	require.NoError(t, s.PutR(2, []byte(`{"R":"first"}`)))
	require.NoError(t, s.PutR(1, []byte(`{"R":"again"}`)))
	return d, s
}

// inJob1 returns the name of a file of job 1.
func inJob1(key string) string { return "job.0000.0000.0000.0001/" + key }

// flip changes a bit of a file.
func flip(d *disk.Disk, name string, bit int) {
	text := []byte(d.Read(name))
	text[bit/8] ^= 1 << (bit % 8)
	d.Set(name, string(text))
}

// It flips a bit of each byte of each file of a store. Deep, it flips each bit.
func TestAFlippedBitIsNoticed(t *testing.T) {
	d, _ := filled(t)
	want, err := told(t, d)
	require.NoError(t, err)
	flips, refused, step := 0, 0, 7
	if deep {
		step = 1
	}
	for _, name := range d.Files() {
		for bit := 0; bit < len(d.Read(name))*8 && !strings.HasPrefix(name, "ballast-"); bit += step {
			flip(d, name, bit)
			got, err := told(t, d)
			if err != nil {
				refused++
				require.ErrorIs(t, err, dirstore.ErrDamaged)
			} else {
				require.Equal(t, want, got, "%s: bit %d", name, bit)
			}
			flip(d, name, bit)
			flips++
		}
	}
	t.Logf("%d of %d flips were refused; the others change nothing that is read", refused, flips)
	require.Greater(t, refused*step, 1500)
}

func TestAFileOfAJobThatIsCutIsNoticed(t *testing.T) {
	d, s := filled(t)
	for _, key := range []string{"eventlog", "jobspec", "R"} {
		whole := d.Read(inJob1(key))
		for n := range whole {
			d.Set(inJob1(key), whole[:n])
			_, err := s.Read(1)
			require.ErrorIs(t, err, dirstore.ErrDamaged)
			require.ErrorContains(t, err, "dirstore: ƒ2: "+key+": damaged: the check digits do not match")
		}
		d.Set(inJob1(key), whole)
	}
	read(t, s, 1)
}

// What is whole of a job comes with the error, as the nodes that it holds are still its own.
func TestADamagedFileHidesNoOtherFileOfItsJob(t *testing.T) {
	d, s := filled(t)
	whole := read(t, s, 1)
	for _, key := range []string{"eventlog", "jobspec", "R"} {
		want := whole
		*map[string]*[]byte{"eventlog": &want.Eventlog, "jobspec": &want.Jobspec, "R": &want.R}[key] = nil
		name := inJob1(key)
		text := d.Read(name)
		for what, harm := range map[string]func(){
			"a flipped bit":            func() { flip(d, name, len(text)/2*8) },
			"a file that is not there": func() { d.Delete(name) },
			"a folder in its place":    func() { d.PutDir(name) },
		} {
			harm()
			got, err := s.Read(1)
			require.ErrorIs(t, err, dirstore.ErrDamaged, what)
			require.Equal(t, want, got, "%s: %s", key, what)
			d.Put(name, text)
		}
	}
	d.PutDir(inJob1("crc32c"))
	got, err := s.Read(1)
	require.ErrorIs(t, err, dirstore.ErrDamaged)
	require.Equal(t, [][]byte{whole.Eventlog, whole.Jobspec, whole.R}, [][]byte{got.Eventlog, got.Jobspec, got.R}, "nothing tells that they are damaged")
}

func TestNothingIsAppendedToALogThatIsDamaged(t *testing.T) {
	d, s := filled(t)
	log := inJob1("eventlog")
	whole := d.Read(log)
	for _, harmed := range []string{
		whole[:len(whole)-1] + "\v", // Repair would cut off a line
		whole[:13] + "1" + whole[13:],
	} {
		d.Set(log, harmed)
		require.EqualError(t, s.Append(1, nil),
			"dirstore: append job.0000.0000.0000.0001/eventlog: eventlog: damaged: the check digits do not match")
		require.Equal(t, harmed, d.Read(log))
	}
	d.Set(log, whole)
	require.NoError(t, s.Append(1, line("memo")))
}

// A log that had no check digits gets them when it is appended to, for all of it.
func TestALogGetsItsCheckDigitsWhenItIsAppendedTo(t *testing.T) {
	d, s := filled(t)
	d.Delete(inJob1("crc32c"))
	flip := func() error {
		bit := (len(d.Read(inJob1("eventlog"))) - 5) * 8
		flip(d, inJob1("eventlog"), bit)
		defer flip(d, inJob1("eventlog"), bit)
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
		d.Crash()
		s := openOn(t, d)
		sums := inJob1("crc32c")
		d.Write(sums, 20, strings.Repeat("\x00", len(d.Read(sums))-20))
		d.Coin = func() bool { return false }
		if at%2 == 0 {
			require.NoError(t, s.Append(1, line("memo")))
		}
		d.StopAt(at/2 + 1)
		_ = s.PutR(1, []byte("new"))
		d.Crash()
		require.Contains(t, []string{`{"R":"again"}`, "new"}, string(read(t, openOn(t, d), 1).R))
	}
}

// A file of check digits may have a length that no log has, and digits that are its own.
func TestCheckDigitsOfANegativeLengthDoNoHarm(t *testing.T) {
	d, s := filled(t)
	want := read(t, s, 1)
	text := "eventlog -0000000000000000001 00000000 jobspec 000000000 R 000000000"
	text += fmt.Sprintf(" %08x\n", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
	d.Set(inJob1("crc32c"), text)
	require.Equal(t, want, read(t, s, 1))
	require.NoError(t, s.Append(1, line("memo")))
}
