package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"math"
	"slices"
)

// ErrDamaged is returned for a file or a value that a store did not write so.
var ErrDamaged = errors.New("damaged")

// bbolt maps the file and trusts it: where a page is missing or wrong, the process dies.
// So Open reads all pages first, as bbolt's format has them. It takes only what bbolt
// writes: each page once, elements without gaps, keys in order.

// The format. Numbers have the byte order of the machine.
const (
	headerLen  = 16 // of a page: id, flags, count, overflow
	elementLen = 16 // flags or position, sizes, page
	metaLen    = 64 // behind the header: its last 8 bytes are its check digits
	bucketLen  = 16 // root page, sequence

	metaMagic, metaVersion = 0xED0CDAED, 2

	branchFlag, leafFlag, freeFlag = 0x01, 0x02, 0x10
)

type checker struct {
	file     io.ReaderAt
	pageSize uint64
	root     uint64 // the page of the buckets, which a new file has none of
	used     []bool // by page
	names    []string
	// last is the key before, in the bucket at hand. It may come again if a branch has it.
	last  []byte
	again bool
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// check returns an error unless bbolt can read a file of that size.
func check(file io.ReaderAt, size int64) error {
	c := &checker{file: file}
	meta, err := c.meta(0, size)
	if err != nil {
		return err
	}
	c.pageSize = uint64(binary.NativeEndian.Uint32(meta[8:]))
	if c.pageSize < 1024 || c.pageSize > math.MaxInt32 {
		return damaged("meta page 0: pages of %d bytes", c.pageSize)
	}
	other, err := c.meta(int64(c.pageSize), size)
	if err != nil {
		return err
	}
	number := binary.NativeEndian.Uint64
	if number(other[48:]) > number(meta[48:]) { // the greater transaction counts
		meta = other
	}
	root, free, pages := number(meta[16:]), number(meta[32:]), number(meta[40:])
	if pages < 4 || pages > uint64(size)/c.pageSize {
		return damaged("%d bytes, and its %d pages take %d: its end is missing; restore it from a backup", size, pages, pages*c.pageSize)
	}
	c.used = make([]bool, pages)
	c.used[0], c.used[1] = true, true
	c.root = root
	if err := c.tree(root, c.bucket); err != nil {
		return err
	}
	for _, name := range [][]byte{bucketJobs, bucketTombs, bucketMeta} {
		if len(c.names) > 0 && !slices.Contains(c.names, string(name)) {
			return damaged("it has no bucket %s", name)
		}
	}
	if err := c.free(free); err != nil {
		return err
	}
	if lost := slices.Index(c.used, false); lost >= 0 {
		return damaged("page %d is neither used nor free", lost)
	}
	return nil
}

// meta reads a meta page. If one of both is damaged, bbolt would take the other, and
// perhaps forget the last transaction.
func (c *checker) meta(at, size int64) ([]byte, error) {
	page := make([]byte, headerLen+metaLen)
	if n, err := c.file.ReadAt(page, at); n < len(page) && !errors.Is(err, io.EOF) {
		return nil, err
	} else if n < len(page) {
		return nil, damaged("%d bytes: no store, or its end is missing; name another file, or restore it from a backup", size)
	}
	meta := page[headerLen:]
	h := fnv.New64a()
	_, _ = h.Write(meta[:metaLen-8])
	if h.Sum64() != binary.NativeEndian.Uint64(meta[metaLen-8:]) ||
		binary.NativeEndian.Uint32(meta) != metaMagic || binary.NativeEndian.Uint32(meta[4:]) != metaVersion {
		return nil, damaged("no meta page at offset %d: the last transaction may be missing", at)
	}
	return meta, nil
}

// page reads a page that nothing else uses, and those that belong to it.
func (c *checker) page(id uint64) ([]byte, error) {
	if id >= uint64(len(c.used)) {
		return nil, damaged("there is no page %d", id)
	}
	page := make([]byte, c.pageSize)
	if _, err := c.file.ReadAt(page, int64(id*c.pageSize)); err != nil {
		return nil, err
	}
	more := uint64(binary.NativeEndian.Uint32(page[12:]))
	if binary.NativeEndian.Uint64(page) != id || id+more >= uint64(len(c.used)) {
		return nil, damaged("page %d is another one", id)
	}
	for n := id; n <= id+more; n++ {
		if err := c.use(n); err != nil {
			return nil, err
		}
	}
	if more > 0 {
		page = make([]byte, (more+1)*c.pageSize)
		if _, err := c.file.ReadAt(page, int64(id*c.pageSize)); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// use notes that a page is used or free.
func (c *checker) use(id uint64) error {
	if id >= uint64(len(c.used)) || c.used[id] {
		return damaged("page %d is there twice, or not at all", id)
	}
	c.used[id] = true
	return nil
}

func (c *checker) free(id uint64) error {
	page, err := c.page(id)
	if err != nil {
		return err
	}
	list := page[headerLen:]
	n := uint64(binary.NativeEndian.Uint16(page[10:]))
	if n == math.MaxUint16 { // the first one is the count
		n, list = binary.NativeEndian.Uint64(list), list[8:]
	}
	if binary.NativeEndian.Uint16(page[8:]) != freeFlag || n > uint64(len(list))/8 {
		return damaged("page %d is no list of free pages", id)
	}
	for ; n > 0; n-- {
		if err := c.use(binary.NativeEndian.Uint64(list)); err != nil {
			return err
		}
		list = list[8:]
	}
	return nil
}

// tree checks a page and those below it, and gives the elements of leaves to do.
func (c *checker) tree(id uint64, do func(flags uint32, key, value []byte) error) error {
	page, err := c.page(id)
	if err != nil {
		return err
	}
	end, err := c.elements(page, do)
	if err == nil && end == headerLen && id != c.root { // an empty bucket is inside its value
		err = damaged("no keys")
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// elements checks the elements of a page, and returns where the last one ends.
func (c *checker) elements(page []byte, do func(flags uint32, key, value []byte) error) (end int, err error) {
	flags, n := binary.NativeEndian.Uint16(page[8:]), int(binary.NativeEndian.Uint16(page[10:]))
	end = headerLen + n*elementLen
	branch := flags == branchFlag
	if flags != leafFlag && (!branch || n == 0) || end > len(page) {
		return 0, damaged("no keys")
	}
	number := binary.NativeEndian.Uint32
	for at := headerLen; n > 0; n, at = n-1, at+elementLen {
		e := page[at : at+elementLen]
		pos, size, more := number(e[4:]), uint64(number(e[8:])), uint64(number(e[12:]))
		if branch {
			pos, size, more = number(e), uint64(number(e[4:])), 0
		}
		if uint64(at)+uint64(pos) != uint64(end) || size == 0 || size+more > uint64(len(page)-end) {
			return 0, damaged("element at offset %d: out of place", at)
		}
		key, value := page[end:end+int(size)], page[end+int(size):end+int(size+more)]
		if order := bytes.Compare(c.last, key); order > 0 || order == 0 && !c.again {
			return 0, damaged("element at offset %d: its key is not in order", at)
		}
		c.last, c.again = key, branch
		if branch {
			err = c.tree(binary.NativeEndian.Uint64(e[8:]), do)
		} else {
			err = do(number(e), key, value)
		}
		if err != nil {
			return 0, err
		}
		end += int(size + more)
	}
	return end, nil
}

// bucket checks a bucket, which is an element of the root.
func (c *checker) bucket(flags uint32, key, value []byte) error {
	known := [][]byte{bucketJobs, bucketTombs, bucketMeta, bucketQueues, bucketAside}
	if flags != 1 || len(value) < bucketLen || !slices.ContainsFunc(known, func(b []byte) bool { return bytes.Equal(b, key) }) {
		return damaged("%q is no bucket of a store", key)
	}
	c.names = append(c.names, string(key))
	c.last, c.again = nil, false
	ofJob := bytes.Equal(key, bucketJobs) || bytes.Equal(key, bucketAside)
	ofTomb := bytes.Equal(key, bucketTombs)
	plain := func(flags uint32, key, _ []byte) error {
		if n := len(key); flags != 0 || ofJob && n != 9 && n != 13 || ofTomb && n != 8 {
			return damaged("%q is no key of it", key)
		}
		return nil
	}
	var err error
	end, inside := 0, value[bucketLen:] // a small bucket has its page in its value
	if root := binary.NativeEndian.Uint64(value); root > 0 && len(inside) == 0 {
		err = c.tree(root, plain)
	} else if root > 0 || len(inside) < headerLen || binary.NativeEndian.Uint16(inside[8:]) != leafFlag {
		err = damaged("it has no page")
	} else if end, err = c.elements(inside, plain); err == nil && end != len(inside) {
		err = damaged("its page has %d bytes", len(inside))
	}
	if err != nil {
		return fmt.Errorf("bucket %s: %w", key, err)
	}
	c.last, c.again = key, false
	return nil
}

// sumsLen is how many bytes of check digits follow a value, CRC-32C: of the value, and
// of its key. So a value that is damaged is still known to be of its job.
const sumsLen = 8

func sum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }

// seal returns a value as it is stored.
func seal(key, data []byte) []byte {
	out := append(make([]byte, 0, len(data)+sumsLen), data...)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(out, sum(data)), sum(key))
}

var errKey = fmt.Errorf("%w: the check digits of the key do not match", ErrDamaged)

// unseal returns what seal was given. It aliases the value.
func unseal(key, value []byte) ([]byte, error) {
	n := len(value) - sumsLen
	if n < 0 || binary.BigEndian.Uint32(value[n+4:]) != sum(key) {
		return nil, fmt.Errorf("%w: %q", errKey, key)
	}
	if binary.BigEndian.Uint32(value[n:]) != sum(value[:n]) {
		return nil, damaged("the check digits of %q do not match", key)
	}
	return value[:n:n], nil
}
