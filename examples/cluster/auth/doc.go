// Package auth is the security of a cluster.
//
// Init makes a folder with an operator, one account with a signing key per role, a CA and the
// certificate of the servers. Add signs a credential of a node or a user, without a server. A
// server starts with ServerOptions, a client connects with Options. The server checks:
//
//	manager  publishes log, do, epoch, event, ping; writes the lease; makes the streams and
//	         purges the log; hears req, up, epoch, ping
//	reader   reads the streams; writes snap and archive; purges the streams; hears epoch and
//	         req.*.reader.*
//	sched    publishes up.sched; hears do.sched and epoch
//	node     publishes up.RANK; hears do.RANK, epoch and req.*.output.RANK
//	user     publishes req.UID.>; hears event.UID and the own inbox
//
// All but sched also publish to the inboxes of users. Nobody deletes streams or messages.
//
// # Duties
//
// Before any work, whatever answers a request asks
//   - wire.Reply: the sender chooses the reply subject, and the server does not check it;
//   - a Limiter: one user may send more than can be answered.
//
// It hears requests on a connection of their own, which the server closes if a flood is too much
// for it. It never answers a node.
//
// # What is trusted
//
//   - Whoever has keys/ can be everybody. No server and no client needs it.
//   - A manager decides everything about jobs.
//   - A reader can do as much: JetStream sends what it reads to any subject. So users and nodes
//     read no stream; a direct get of their own archive would let users append to the log.
//   - A scheduler decides which job starts where, and sees all jobspecs. The manager refuses what
//     would give a resource to two jobs.
//   - A node reports what it likes for its own rank, and can forge answers to a user whose inbox
//     it has learned from a request.
//   - Root on a machine can be whoever has a credential there.
//
// # What remains
//
//   - Credentials cannot be revoked: give them a life.
//   - Nothing limits the connections of a user. A flood through many of them slows all.
//   - Loopback has no TLS: a local process that takes the server's port while the server is down
//     can pose as it. It learns no key.
//   - The certificates last ten years.
package auth
