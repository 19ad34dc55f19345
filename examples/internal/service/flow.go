package service

import "errors"

// An outbound is what a scheduler or an executor is to be sent. It waits there until the other end
// reads: all jobs together may have more to say than a peer may be behind.
type outbound struct {
	fresh []outgoing // waits for the records with the store, too
	list  []outgoing
}

// An outgoing adds a message to an Out, and returns its length. It is encoded then, so that it
// takes little memory before.
type outgoing func(out *Out) int

func (q *outbound) add(o outgoing) { q.fresh = append(q.fresh, o) }

// durable lets go what waited for the store.
func (q *outbound) durable() { q.list, q.fresh = append(q.list, q.fresh...), nil }

const (
	maxFlow   = 1 << 20 // bytes of a queue in one Out, but for the last message
	maxBehind = 1 << 16 // messages in a queue, beside four for each active job
)

// flow adds what the peers have room for to what goes out at once, and before it.
func (s *Service) flow() {
	var out Out
	s.flowTo(&out, s.sched.sender, &s.sched.queue)
	s.flowTo(&out, s.exec.sender, &s.exec.queue)
	out.add(s.quick)
	s.quick = out
}

func (s *Service) flowTo(out *Out, sender string, q *outbound) {
	if len(q.list) == 0 || s.cfg.Reads != nil && !s.cfg.Reads(sender) {
		return
	}
	for n := 0; len(q.list) > 0 && n < maxFlow; q.list = q.list[1:] {
		n += q.list[0](out)
		q.list[0] = nil
	}
}

// isFar reports whether a queue is so long that its peer has to begin anew.
func (s *Service) isFar(q *outbound) bool {
	if len(q.list) <= maxBehind {
		return false
	}
	n := maxBehind
	for _, jobs := range s.jobs {
		n += 4 * jobs
	}
	return len(q.list) > n
}

// endFar ends the sessions of peers that do not read.
func (s *Service) endFar() (err error) {
	if s.isFar(&s.sched.queue) {
		s.quick.logf("the scheduler does not read: it is lost")
		err = s.endSession(s.sched.sender, s.schedLost)
	}
	if s.isFar(&s.exec.queue) {
		s.quick.logf("the executor does not read: it is lost")
		err = errors.Join(err, s.endSession(s.exec.sender, func() error { return s.execLost("it does not read") }))
	}
	return err
}

// endSession ends a session whose peer does not know.
func (s *Service) endSession(sender string, end func() error) error {
	err := end()
	s.quick.Ended = append(s.quick.Ended, sender)
	return err
}
