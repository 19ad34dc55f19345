// Package flux is a client of a broker of Flux. It speaks RFC 3 on the broker's local socket.
//
//	for {
//		c, err := flux.Redial(ctx, flux.Config{Handle: func(m flux.Message) { inbox <- m }})
//		if err != nil {
//			return err // the URI is wrong, this user is refused, or ctx ended
//		}
//		if err = c.Register(ctx, "job-manager"); err == nil {
//			err = c.Subscribe(ctx, "job-exception")
//		}
//		...
//		<-c.Done() // c.Err() says why
//	}
//
// A service answers each request, unless it has FlagNoResponse:
//
//	m := <-inbox
//	err := c.Send(m.Respond(flux.Text(`{"id":1}`)))
//	err = c.Send(m.RespondError(errno.Invalid, "no such job"))
package flux
