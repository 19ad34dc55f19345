// Package flux is a client of a broker of Flux, in Go alone. It speaks RFC 3 and RFC 6 on the
// broker's local socket, as flux-core 0.88 does.
//
//	for {
//		c, err := flux.Redial(ctx, flux.Config{Handle: func(m flux.Message) { inbox <- m }}) // 1
//		if err != nil {
//			return err // the URI is wrong, this user is refused, or ctx has ended
//		}
//		err = errors.Join(c.Register(ctx, "job-manager"), c.Subscribe(ctx, "job-exception")) // 2
//		...
//		<-c.Done() // 3
//	}
//
// 1. Handle gets requests, events and strays in order. It must not wait for an answer: the
// goroutine that calls it reads the answers, too.
//
// 2. Services and subscriptions end with their connection, and so do open calls.
//
// 3. Err says why: ErrClosed after Close, ErrLost, or ErrFraming where no broker listens.
//
// A service answers each request, unless it has FlagNoResponse, and may do so late:
//
//	err := c.Send(m.Respond(flux.Text(`{"id":1}`)))
//	err = c.Send(m.RespondError(errno.Invalid, "no such job"))
//
// A module of the broker has such a connection from it:
//
//	os.Args, err = flux.Arguments(os.Args)
//	c, err := flux.Dial(ctx, flux.Config{URI: os.Getenv(flux.ModuleURI), Handle: …})
//	err = c.Running() // before the requests NAME.… come, of which NAME.shutdown asks it to end
//	c.Leave(err)
//
// # Requests
//
// Call waits for one answer, Start hears of many. A matchtag is in use until the last answer has
// come, even if nobody waits for it any more. A guest's response answers no call. The broker does
// not answer for a service whose connection has ended, so calls need a ctx that ends.
//
// Who a request is from is in UserID and Rolemask, which the broker sees to. Its Route is not to
// be trusted for that: a client may put hops in front. When a client is gone, its broker sends
// SERVICE.disconnect with the route, the user and the matchtag of its first request.
//
// # Limits
//
// A message has at most 16 MiB, 256 hops and 1024 bytes of topic. Others can send more to a
// service: such a message is skipped, as a malformed one is, and Skipped hears of it. A request
// that is too long is answered with EMSGSIZE.
//
// Send never waits. What the broker has not read has at most 64 MiB; beyond, Send returns ErrFull
// and sends nothing. A Message that was received retains its frame; what is sent is copied.
//
// # What RFC 3 does not say
//
// The magic number of a frame is in the byte order of the machine. Topics have any bytes but a
// NUL. A service is one word, the first of a topic. Routes of what a client gets end in hops
// inside its broker. Responses that the broker's module for sockets makes itself are from an
// unknown user.
package flux
