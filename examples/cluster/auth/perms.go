package auth

import (
	"github.com/nats-io/jwt/v2"

	"github.com/joblife/joblife/examples/cluster/wire"
)

// MaxPayload is the most bytes of a message; UserMaxPayload of a user's, so of a jobspec and its
// envelope. A flood of larger ones fills what the server keeps for the connection of who answers
// (64 MB) faster than it is read, and the server then closes that connection.
const (
	MaxPayload     = 8 << 20
	UserMaxPayload = 64 << 10
)

// userMaxSubs is the most subscriptions of one connection of a user.
const userMaxSubs = 32

// inboxes is what wire.Inbox begins with for all users.
const inboxes = "_INBOX."

// OutputVerb is what a user asks of a node, with the rank of it as the argument.
const OutputVerb = "output"

// permissions is all that the server lets a role do. It puts the rank of a node and the uid of a
// user for name.
func permissions(i wire.Instance, r role) jwt.UserPermissionLimits {
	const name, answers = "{{name()}}", inboxes + "*.>"
	bucket := "KV_" + i.Bucket()
	p := jwt.NewUserScope().Template // no limits
	pub, sub := &p.Pub.Allow, &p.Sub.Allow
	switch r {
	case roleManager:
		pub.Add(i.Subject("log.>"), i.Subject("do.*"), i.Subject("epoch"), i.Subject("event.*"), i.Subject("ping.*"), answers)
		pub.Add("$KV."+i.Bucket()+".>", "$JS.API.INFO")
		sub.Add(i.Subject("req.*.>"), i.Subject("up.*"), i.Subject("epoch"), i.Subject("ping.*"))
		for _, stream := range []string{i.Log(), i.Snapshots(), i.Archive(), bucket} {
			pub.Add("$JS.API.STREAM.CREATE."+stream, "$JS.API.STREAM.UPDATE."+stream)
			pub.Add(reads(stream)...)
		}
		pub.Add("$JS.API.STREAM.PURGE." + i.Log())
		pub.Add(Manager().inbox() + ".>") // of another manager, which asks whether this one lives
		sub.Add(Manager().inbox() + ".>")
	case roleReader:
		pub.Add(i.Subject("snap.*"), i.Subject("archive.*.*"), answers)
		for _, stream := range []string{i.Log(), i.Snapshots(), i.Archive()} {
			pub.Add(reads(stream)...)
		}
		pub.Add(reads(bucket)...)
		pub.Add("$KV."+i.Bucket()+".snapshot", "$JS.API.STREAM.PURGE."+i.Log())
		pub.Add("$JS.API.STREAM.PURGE."+i.Snapshots(), "$JS.API.STREAM.PURGE."+i.Archive())
		sub.Add(i.Subject("epoch"), i.Subject("req", "*", wire.ReaderVerb, "*"), Reader().inbox()+".>")
	case roleSched:
		pub.Add(i.Subject("up", name))
		sub.Add(i.Subject("do", name), i.Subject("epoch"))
	case roleNode:
		pub.Add(i.Subject("up", name), answers)
		sub.Add(i.Subject("do", name), i.Subject("epoch"), i.Subject("req", "*", OutputVerb, name))
	case roleUser:
		pub.Add(i.Subject("req", name, ">"))
		sub.Add(i.Subject("event", name), inboxes+name+".>")
		p.Subs, p.Payload = userMaxSubs, UserMaxPayload
	}
	return p
}

// reads is what reads a stream that allows direct gets: its state, its messages, consumers and
// their flow control. JetStream sends what it reads
// to whatever subject the reader names.
func reads(stream string) []string {
	return []string{
		"$JS.API.STREAM.INFO." + stream,
		"$JS.API.DIRECT.GET." + stream,
		"$JS.API.DIRECT.GET." + stream + ".>",
		"$JS.API.CONSUMER.CREATE." + stream + ".>",
		"$JS.API.CONSUMER.INFO." + stream + ".*",
		"$JS.API.CONSUMER.MSG.NEXT." + stream + ".*",
		"$JS.API.CONSUMER.DELETE." + stream + ".*",
		"$JS.FC." + stream + ".>",
	}
}
