package jobstate

import "fmt"

// Check returns the first violation of a job's invariants.
func Check(j *Job) error {
	if !j.State().Single() {
		return fmt.Errorf("state %v is no single state", j.State())
	}
	if err := checkOrdered(&j.deps); err != nil {
		return fmt.Errorf("dependencies: %w", err)
	}
	if err := checkOrdered(&j.actions); err != nil {
		return fmt.Errorf("actions: %w", err)
	}
	if err := checkOrdered(&j.notes.ordered); err != nil {
		return fmt.Errorf("annotations: %w", err)
	}
	for key, a := range j.actions.all() {
		if a.live < 0 {
			return fmt.Errorf("action %q is live %d times", key, a.live)
		}
	}
	return nil
}

func checkOrdered[V any](o *ordered[V]) error {
	live := 0
	for i := range o.items {
		if o.items[i].dead {
			continue
		}
		live++
		if o.index != nil {
			if at, ok := o.index[o.items[i].key]; !ok || at != i {
				return fmt.Errorf("index has %d for %q, which is at %d", at, o.items[i].key, i)
			}
		}
	}
	if live != o.live || o.index != nil && len(o.index) != live {
		return fmt.Errorf("%d are live, counted %d, indexed %d", live, o.live, len(o.index))
	}
	if len(o.items) > 0 && len(o.items) >= 2*o.live+1 && o.live == 0 {
		return fmt.Errorf("%d dead items are kept", len(o.items))
	}
	return nil
}
