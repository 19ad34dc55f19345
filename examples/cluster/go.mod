module github.com/joblife/joblife/examples/cluster

go 1.26.0

require github.com/joblife/joblife v0.0.0

require (
	github.com/RoaringBitmap/roaring/v2 v2.30.0 // indirect
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/google/btree v1.1.3 // indirect
	github.com/mschoch/smat v0.2.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	github.com/joblife/joblife => ../..
	github.com/joblife/joblife/examples => ..
	github.com/joblife/joblife/purge/boltstore => ../../purge/boltstore
)
