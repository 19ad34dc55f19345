package auth

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// An attack does what by must not, as the client k of c, and returns the condition that it did.
type attack struct {
	name string
	by   ID
	do   func(c *cluster, k *client) func() bool
}

// publishes is the attack of a message on subject that arrives at to, who subscribes at.
func publishes(subject string, to ID, at string) func(*cluster, *client) func() bool {
	return func(c *cluster, k *client) func() bool {
		s := c.client(k.t, to).listen(at)
		k.target = subject
		k.send(subject, "", "attack")
		return got(s)
	}
}

// hears is the attack of a subscription to at that gets what from publishes on subject.
func hears(at string, from ID, subject string) func(*cluster, *client) func() bool {
	return func(c *cluster, k *client) func() bool {
		k.target = at
		s := k.listen(at)
		c.client(k.t, from).send(subject, "", "secret")
		return got(s)
	}
}

// asks is the attack of a request to the server whose answer has want.
func asks(subject, text, want string) func(*cluster, *client) func() bool {
	return func(_ *cluster, k *client) func() bool {
		answers := k.NewInbox()
		if k.id.role == roleNode || k.id.role == roleSched {
			answers = jl + "do." + k.id.name // it has no inbox
		}
		s := k.listen(answers)
		k.target = subject
		k.send(subject, answers, text)
		return func() bool {
			if !got(s)() {
				return false
			}
			m, err := s.NextMsg(patience)
			require.NoError(k.t, err)
			all := fmt.Sprint(string(m.Data), m.Header)
			require.Contains(k.t, all, want)
			return true
		}
	}
}

// stores is the attack of a message on subject, with that reply, that changes the last sequence
// of stream.
func stores(subject, reply, stream string) func(*cluster, *client) func() bool {
	return func(c *cluster, k *client) func() bool {
		before := c.last(k.t, stream)
		k.target = subject
		k.send(subject, reply, "")
		return func() bool { return c.last(k.t, stream) != before }
	}
}

// makes is the attack of a new stream on subjects.
func makes(name, subjects string) func(*cluster, *client) func() bool {
	return asks("$JS.API.STREAM.CREATE."+name, fmt.Sprintf(`{"name":%q,"subjects":[%q],"retention":"limits","storage":"file","num_replicas":1}`, name, subjects), `"did_create":true`)
}

// consumes is the attack of a consumer that delivers stream to a subject.
func consumes(stream, to string) func(*cluster, *client) func() bool {
	return asks("$JS.API.CONSUMER.CREATE."+stream+".spy", fmt.Sprintf(`{"stream_name":%q,"config":{"name":"spy","deliver_subject":%q,"deliver_policy":"all","ack_policy":"none"},"action":""}`, stream, to), `"deliver_subject"`)
}

const (
	jl       = "jl." + string(inst) + "."
	getOwn   = "$JS.API.DIRECT.GET.JLARCHIVE_main." + jl + "archive.1.f1"
	getOther = "$JS.API.DIRECT.GET.JLARCHIVE_main." + jl + "archive.10.f2"
	getLease = "$JS.API.DIRECT.GET.KV_JL_main.$KV.JL_main.active"
	success  = `"success":true`
)

func attacks() []attack {
	// What nobody may do but the manager.
	var all []attack
	for _, by := range []ID{User(1), Node(1), Reader(), Sched()} {
		all = append(all, []attack{
			{"append to the log", by, stores(jl+"log.rec", "", "JL_main")},
			{"put a fence into the log", by, stores(jl+"log.fence", "", "JL_main")},
			{"write the lease", by, stores("$KV.JL_main.active", "", "KV_JL_main")},
			{"give an order to a node", by, publishes(jl+"do.2", Node(2), jl+"do.2")},
			{"beat as a manager", by, publishes(jl+"epoch", Node(2), jl+"epoch")},
			{"tell of an event", by, publishes(jl+"event.10", User(10), jl+"event.10")},
			{"request as a user", by, publishes(jl+"req.10.submit", Manager(), jl+"req.*.submit")},
			{"request as all users", by, publishes(jl+"req.*.submit", Manager(), jl+"req.*.>")},
			{"report as a node", by, publishes(jl+"up.2", Manager(), jl+"up.*")},
			{"hear the orders of a node", by, hears(jl+"do.2", Manager(), jl+"do.2")},
			{"hear the orders of all nodes", by, hears(jl+"do.*", Manager(), jl+"do.2")},
			{"hear what nodes report", by, hears(jl+"up.*", Node(2), jl+"up.2")},
			{"hear what users request", by, hears(jl+"req.*.submit", User(10), jl+"req.10.submit")},
			{"hear all that users request", by, hears(jl+"req.>", User(10), jl+"req.10.submit")},
			{"hear all of the instance", by, hears("jl.>", User(10), jl+"req.10.submit")},
			{"hear everything", by, hears(">", User(10), jl+"req.10.submit")},
			{"hear the log as it is written", by, hears(jl+"log.>", Manager(), jl+"log.rec")},
			{"hear the answers to the manager", by, hears("_INBOX_manager.>", Manager(), "_INBOX_manager.x")},
			{"hear the answers to all users", by, hears("_INBOX.>", Manager(), "_INBOX.10.x")},
			{"hear the answers to one user", by, hears("_INBOX.10.>", Manager(), "_INBOX.10.x")},
			{"hear the events of all", by, hears(jl+"event.*", Manager(), jl+"event.10")},
			{"hear the events of one", by, hears(jl+"event.10", Manager(), jl+"event.10")},
			{"make a stream of requests", by, makes("spy", jl+"req.>")},
			{"list the streams", by, asks("$JS.API.STREAM.NAMES", "", "JL_main")},
		}...)
	}
	// What nobody may do.
	for _, by := range []ID{User(1), Node(1), Reader(), Sched(), Manager()} {
		all = append(all, []attack{
			{"delete the log", by, asks("$JS.API.STREAM.DELETE.JL_main", "", success)},
			{"delete the bucket", by, asks("$JS.API.STREAM.DELETE.KV_JL_main", "", success)},
			{"delete the archive", by, asks("$JS.API.STREAM.DELETE.JLARCHIVE_main", "", success)},
			{"delete a message", by, func(c *cluster, k *client) func() bool {
				return asks("$JS.API.STREAM.MSG.DELETE.JLSNAP_main", fmt.Sprintf(`{"seq":%d}`, c.last(k.t, "JLSNAP_main")), success)(c, k)
			}},
			{"ask the system who is connected", by, asks("$SYS.REQ.ACCOUNT.PING.CONNZ", "", "cid")},
			{"read the account", by, asks("$SYS.REQ.USER.INFO", "", "account")},
		}...)
	}
	return append(all, []attack{
		{"read the log", User(1), asks("$JS.API.DIRECT.GET.JL_main", `{"seq":1}`, "record")},
		{"read the log by its other door", User(1), asks("$JS.API.STREAM.MSG.GET.JL_main", `{"seq":1}`, "cmVjb3Jk")},
		{"consume the log", User(1), consumes("JL_main", "_INBOX.1.log")},
		{"read another's archive", User(1), asks(getOther, "", "archive.10")},
		{"read the own archive", User(1), asks(getOwn, "", "archive.1")},
		{"let JetStream answer into the log", User(1), stores(getOwn, jl+"log.rec", "JL_main")},
		{"let JetStream answer to a node", User(1), func(c *cluster, k *client) func() bool {
			s := c.client(k.t, Node(2)).listen(jl + "do.2")
			k.target = getOwn
			k.send(getOwn, jl+"do.2", "")
			return got(s)
		}},
		{"let the server trace to a node", User(1), func(c *cluster, k *client) func() bool {
			s := c.client(k.t, Node(2)).listen(jl + "do.2")
			c.client(k.t, Manager()).listen(jl + "req.*.submit")
			k.target = jl + "do.2"
			require.NoError(k.t, k.PublishMsg(&nats.Msg{Subject: jl + "req.1.submit", Header: nats.Header{"Nats-Trace-Dest": {jl + "do.2"}}}))
			require.NoError(k.t, k.flush())
			return got(s)
		}},
		{"write the own archive", User(1), stores(jl+"archive.1.f1", "", "JLARCHIVE_main")},
		{"write a snapshot", User(1), stores(jl+"snap.1", "", "JLSNAP_main")},
		{"answer another", User(1), publishes("_INBOX.10.x", User(10), "_INBOX.10.>")},
		{"share the requests of the manager", User(1), func(c *cluster, k *client) func() bool {
			k.target = jl + "req.*.submit"
			s, err := k.QueueSubscribeSync(jl+"req.*.submit", "q")
			require.NoError(k.t, err)
			require.NoError(k.t, k.flush())
			c.client(k.t, User(10)).send(jl+"req.10.submit", "", "secret")
			return got(s)
		}},
		{"subscribe without end", User(1), func(c *cluster, k *client) func() bool {
			for i := range userMaxSubs {
				_, err := k.SubscribeSync(fmt.Sprint("_INBOX.1.", i))
				require.NoError(k.t, err)
			}
			done := hears("_INBOX.1.last", Manager(), "_INBOX.1.last")(c, k)
			k.target = "maximum subscriptions exceeded"
			return done
		}},
		{"send more than a jobspec", User(1), func(c *cluster, k *client) func() bool {
			s := c.client(k.t, Manager()).listen(jl + "req.*.submit")
			_, err := fmt.Fprintf(k.tcp, "PUB %s %d\r\n%s\r\n", jl+"req.1.submit", UserMaxPayload+1, strings.Repeat("x", UserMaxPayload+1))
			if c == open {
				require.NoError(k.t, err)
			}
			return got(s)
		}},

		{"read the lease", User(1), asks(getLease, "", "manager-a")},
		{"read the lease", Node(1), asks(getLease, "", "manager-a")},
		{"report as another", Node(1), publishes(jl+"up.2", Manager(), jl+"up.*")},
		{"serve the output of another", Node(1), hears(jl+"req.*.output.2", User(10), jl+"req.10.output.2")},
		{"serve the output of all", Node(1), hears(jl+"req.*.output.*", User(10), jl+"req.10.output.2")},
		{"read the log", Node(1), asks("$JS.API.DIRECT.GET.JL_main", `{"seq":1}`, "record")},
		{"consume the log", Node(1), consumes("JL_main", "_INBOX_node-1.log")},
		{"write the archive", Node(1), stores(jl+"archive.1.f1", "", "JLARCHIVE_main")},
		{"answer a friend with an order to a node", Node(1), func(c *cluster, k *client) func() bool {
			victim := c.client(k.t, Node(2)).listen(jl + "do.2")
			asked := k.listen(jl + "req.*.output.1")
			c.client(k.t, User(10)).send(jl+"req.10.output.1", jl+"do.2", "attack")
			m, err := asked.NextMsg(patience)
			require.NoError(k.t, err)
			k.target = m.Reply
			require.NoError(k.t, m.Respond([]byte("attack")))
			require.NoError(k.t, k.flush())
			return got(victim)
		}},

		{"schedule", User(1), publishes(jl+"up.sched", Manager(), jl+"up.*")},
		{"schedule", Node(1), publishes(jl+"up.sched", Manager(), jl+"up.*")},
		{"schedule", Reader(), publishes(jl+"up.sched", Manager(), jl+"up.*")},
		{"hear what is scheduled", User(1), hears(jl+"do.sched", Manager(), jl+"do.sched")},
		{"hear what is scheduled", Node(1), hears(jl+"do.sched", Manager(), jl+"do.sched")},
		{"hear what is scheduled", Reader(), hears(jl+"do.sched", Manager(), jl+"do.sched")},
		{"answer a user", Sched(), publishes("_INBOX.10.x", User(10), "_INBOX.10.>")},
		{"read the log", Sched(), asks("$JS.API.DIRECT.GET.JL_main", `{"seq":1}`, "record")},
		{"consume the log", Sched(), consumes("JL_main", "_INBOX_sched.log")},
		{"read the lease", Sched(), asks(getLease, "", "manager-a")},
		{"read another's archive", Sched(), asks(getOther, "", "archive.10")},
		{"write the archive", Sched(), stores(jl+"archive.1.f1", "", "JLARCHIVE_main")},
		{"write a snapshot", Sched(), stores(jl+"snap.1", "", "JLSNAP_main")},
		{"purge the log", Sched(), asks("$JS.API.STREAM.PURGE.JL_main", "", success)},

		{"change the log's limits", Reader(), asks("$JS.API.STREAM.UPDATE.JL_main", `{"name":"JL_main","subjects":["jl.main.log.>"],"retention":"limits","storage":"file","max_msgs":1000,"num_replicas":1,"allow_direct":true}`, "max_msgs")},

		{"make a stream of another name", Manager(), makes("spy", "spy.>")},
		{"report as a node", Manager(), publishes(jl+"up.2", Manager(), jl+"up.*")},
		{"request as a user", Manager(), publishes(jl+"req.10.submit", Manager(), jl+"req.*.submit")},
		{"write the archive", Manager(), stores(jl+"archive.1.f1", "", "JLARCHIVE_main")},

		{"purge the log", User(1), asks("$JS.API.STREAM.PURGE.JL_main", "", success)},
		{"purge the log", Node(1), asks("$JS.API.STREAM.PURGE.JL_main", "", success)},
	}...)
}

// TestNobodyDoesWhatIsNotHis runs each attack twice: the server refuses it, and it succeeds where
// everything is allowed.
func TestNobodyDoesWhatIsNotHis(t *testing.T) {
	strict.restore(t)
	for _, a := range attacks() {
		t.Run(a.by.String()+" cannot "+a.name, func(t *testing.T) {
			k := strict.client(t, a.by)
			done := a.do(strict, k)
			refused := func() bool {
				return k.target != "" && strings.Contains(k.refusals(), k.target) || k.IsClosed()
			}
			require.Equal(t, 0, within(patience, refused, done), "the server did not refuse: %v", k.refusals())
			require.False(t, done(), "it refused and did it")

			open.restore(t)
			k = open.client(t, a.by)
			require.Equal(t, 0, within(patience, a.do(open, k)), "the control failed, so that the attack proves nothing: %v", k.refusals())
		})
	}
}
