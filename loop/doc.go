// Package loop runs a joblife.Manager: inputs come from many goroutines, records go to a
// store that takes its time, and what follows is done when they are durable.
//
//	l, err := loop.New(m, loop.Config{
//		Store: store, // 1
//		Scheduler: s, // a sched.Scheduler, after its Acquire
//		Executor: new(exec.Executor), Commands: send, Recovered: left, // 2
//		Effects: func(m *joblife.Manager, rd *joblife.Ready) { publish(rd.Journal) }, // 3
//		Refused: func(in joblife.Input, err error) { log.Println(err) }, // 4
//	})
//	go l.Run(ctx) // until the first error
//	err = l.Hear(func(x *exec.Executor) error { return x.Update(session, status) }) // for nodes
//	answer, err := l.Call(ctx, joblife.Submit{Spec: spec, Urgency: 16}) // for users
//	err = l.View(ctx, func(m *joblife.Manager) { waits = m.Stats().Waits }) // for readers
//
// What counts:
//
//  1. The store works in a goroutine of its own. Inputs that come meanwhile share the next
//     commit. If it fails, the effects of that Ready never happen.
//  2. Left is what joblife.Restore returned. You write how a command gets to a node, and what
//     a node says; the Loop does the rest.
//  3. What the Loop calls has the Manager to itself, and inputs wait for it. It may Put, but a
//     Call, Hear or View inside it is a deadlock. What takes long belongs in a goroutine, with a
//     copy.
//  4. If a scheduler or an executor elsewhere said what is refused, end its session.
//
// The [joblife.Manager] is the Loop's. Call and View return when what they say is durable; Hear
// does not wait for the store. View is also for what functions of Hear keep.
//
// Without Scheduler or Executor, Effects passes a Ready to those elsewhere, and [Loop.Put] takes
// what they say, in order. It never waits. [Loop.Do] is for requests about many jobs: a function
// that reads the Manager, and steps what it chooses.
//
// A simulator calls [Loop.Advance] in place of Run, with times of its own.
//
// # The end
//
// When ctx ends, inputs that wait are lost, as in a crash. What the Manager has decided is
// stored and handed out, and Run returns. After a [joblife.Shutdown] that happens when no
// action runs, or at its deadline. Then the caller may take the Manager's Snapshot, such as to
// make a log shorter. A panic in a function of View comes out of View, and the Loop goes on. One
// in anything else that the Loop calls ends it, and comes out of Run.
//
// # Time
//
// Run reads the system's clock. If that is set back, or is behind the records of a restart, the
// Loop's time goes on from where it was, so that timeouts last as long as they should.
//
// # Limits
//
// The inbox has room for [Config].MaxInputs inputs, with 64 MiB in all that they refer to;
// Call and View may use half, so that users do not keep out what nodes report.
// While the store works, 16 384 inputs and Views, or 64 MiB, go on to the next commit; then
// the others wait.
package loop
