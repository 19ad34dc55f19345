package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// seconds counts from the first submission.
type seconds int64

// An arrival is a job as it comes.
type arrival struct {
	submit seconds
	run    seconds // how long it runs
	limit  seconds // how long it says that it runs at most; 0: not known
	size   int     // nodes, or cores where jobs share nodes; in a trace, processors
	user   uint32
	fails  bool // it exits with 1
	gpu    bool // it takes a gpu with each options.perGPU cores
}

// draw makes up a workload: sizes are powers of two in most jobs, small ones the more
// frequent; runtimes are log-normal; jobs arrive at random.
func draw(o *options, rng *rand.Rand) []arrival {
	jobs := make([]arrival, o.jobs)
	at := 0.0
	most := o.maxSize * o.units()
	top := math.Log2(float64(most))
	for i := range jobs {
		size := int(math.Round(math.Exp2(rng.Float64() * rng.Float64() * top)))
		if rng.IntN(4) > 0 {
			size = int(math.Exp2(math.Round(math.Log2(float64(size)))))
		}
		run := math.Exp(rng.NormFloat64()*1.2) * float64(o.runtime)
		jobs[i] = arrival{
			submit: seconds(at), run: min(max(1, seconds(run)), o.maxRuntime), size: min(max(1, size), most),
			user: uint32(1000 + rng.IntN(50)), fails: rng.Float64() < o.fail,
		}
		// People ask for round times, and for more than they need.
		jobs[i].limit = min(roundUp(seconds(float64(jobs[i].run)*(1+rng.ExpFloat64()*(o.estimate-1)))), maxSeconds)
		at += rng.ExpFloat64() * float64(o.arrival)
		if o.gpus > 0 && rng.Float64() < o.gpuJobs {
			per := o.perGPU()
			jobs[i].gpu, jobs[i].size = true, min((jobs[i].size+per-1)/per, o.maxSize*o.gpus)*per
		}
	}
	return jobs
}

// roundUp rounds a time up to what people ask for.
func roundUp(t seconds) seconds {
	for _, unit := range []seconds{60, 300, 900, 1800} {
		if t <= 12*unit {
			return (t + unit - 1) / unit * unit
		}
	}
	return (t + 3599) / 3600 * 3600
}

// fromTrace makes a workload of a trace, in the order of submission: processors become whole
// nodes, or cores where jobs share nodes, and unknown limits the runtime times -estimate. Jobs
// that the machine cannot hold are left out.
func fromTrace(t *trace, o *options) (jobs []arrival) {
	for i, j := range t.jobs {
		per := o.cores / o.units() // processors
		j.size = (j.size + per - 1) / per
		if j.size > o.nodes*o.units() {
			t.skip(t.lines[i], fmt.Errorf("%d %s, more than the machine has", j.size, o.unit()))
			continue
		}
		if j.limit == 0 {
			j.limit = min(max(1, seconds(math.Ceil(float64(j.run)*o.estimate))), maxSeconds)
		}
		jobs = append(jobs, j)
	}
	slices.SortStableFunc(jobs, func(a, b arrival) int { return cmp.Compare(a.submit, b.submit) })
	return jobs
}

// loadOf returns the offered load: the unit-seconds that the jobs run, by those that
// the machine has while they arrive, or the same of gpus if that is more. It is 0 where all
// arrive at once.
func loadOf(jobs []arrival, o *options) float64 {
	work, gpuWork := 0.0, 0.0
	for _, j := range jobs {
		work += float64(j.run) * float64(j.size)
		if j.gpu {
			gpuWork += float64(j.run) * float64(j.size/o.perGPU())
		}
	}
	span := float64(jobs[len(jobs)-1].submit - jobs[0].submit)
	if span == 0 {
		return 0
	}
	return max(work/float64(o.units()), gpuWork/float64(max(1, o.gpus))) / span / float64(o.nodes)
}

// rescale moves the arrivals so that the offered load is as wanted. It moves none if the last
// would come after more than 100 years.
func rescale(jobs []arrival, o *options) error {
	first := jobs[0].submit
	factor := 1.0
	if o.load > 0 {
		factor = loadOf(jobs, o) / o.load
	}
	if last := float64(jobs[len(jobs)-1].submit-first) * factor; last > maxSeconds {
		return fmt.Errorf("the last job would come after %.3g years, more than 100: give a greater -load, or fewer jobs", last/365/86400)
	}
	for i := range jobs {
		jobs[i].submit = seconds(math.Round(float64(jobs[i].submit-first) * factor))
	}
	return nil
}
