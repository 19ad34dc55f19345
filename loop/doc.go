// Package loop runs a joblife.Manager: inputs come from many goroutines, records go to a
// store that takes its time, and what follows is done when they are durable.
//
//	l, err := loop.New(m, loop.Config{
//		Store: store, // 1
//		Scheduler: s, // a sched.Scheduler, after its Acquire
//		Effects: func(m *joblife.Manager, rd *joblife.Ready) { // 2
//			executor.Send(rd.Exec, rd.Raised)
//			nodes.Do(rd.Launch, rd.Signal)
//		},
//		Refused: func(in joblife.Input, err error) { endSession(in, err) }, // 3
//	})
//	go l.Run(ctx) // 4
//	err = l.Put(joblife.ExecHello{}) // 5
//	answer, err := l.Call(ctx, joblife.Submit{Spec: spec, Urgency: 16}) // 6
//	err = l.View(ctx, func(m *joblife.Manager) { waits = m.Stats().Waits }) // 7
//
// What counts:
//
//  1. The store works in a goroutine of its own. Inputs are dispatched meanwhile, and share
//     the next commit. If it fails, the effects of that Ready never happen.
//  2. Effects, Refused, the Scheduler and the functions of View and Do have the Manager to
//     themselves, one at a time, and inputs wait for them. They may Put, but a Call or a View
//     inside them, or inside the store, is a deadlock. What takes long belongs in a goroutine,
//     with a copy.
//  3. If an executor, or a scheduler elsewhere, said what is refused, end its session.
//  4. The [joblife.Manager] is the Loop's. Run ends with the first error.
//  5. Put is for schedulers, executors and nodes. It keeps the order and never waits.
//  6. Call is for users. It returns when what it says is durable.
//  7. View is for readers. It returns when what they saw is durable.
//
// [Loop.Do] is for requests about many jobs: a function that reads the Manager, and steps what
// it chooses.
//
// A simulator calls [Loop.Advance] in place of Run, with times of its own.
//
// # The end
//
// When ctx ends, inputs that wait are lost, as in a crash. What the Manager has decided is
// stored and handed out, and Run returns. After a [joblife.Shutdown] that happens when no
// action runs, or at its deadline. Then the caller may take the Manager's Snapshot, such as to
// make a log shorter. A panic in Store, Scheduler, Effects, Refused or a function of Do ends the
// Loop and comes out of Run. One in a function of View comes out of View, and the Loop goes on.
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
