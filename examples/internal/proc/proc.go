//go:build unix

// Package proc is what resource managers of local processes share. It runs the tasks of a node
// as processes that outlive the program.
//
//	func main() {
//		p := proc.New("name") // before anything else
//		p.Parse("")
//		p.Scheduler = sched.New(sched.Config{})
//		p.Exit(1, p.Run(func(ctx context.Context, c *proc.Cluster) error {
//			_, err := c.Call(ctx, joblife.Submit{Spec: spec})
//			return err
//		}))
//	}
//
// A Cluster is what a resource manager of local processes is made of: its jobs in a bbolt
// file, nodes of this machine, and their executor. Each task has a shim, which is this program
// again: it starts the command, waits for it, and writes its status to a record. A task that
// the program started before it was killed is in the hello of its node in the next life,
// running or with its status. Nothing runs twice: the record is on the disk before the shim
// starts.
//
// A command has the id of its job in FLUX_JOB_ID, as in Flux, and the rank of its node in
// JOBLIFE_RANK: a script of Flux would ask its broker for that.
//
// Two pipes with names lead to a shim. It gets signals through one, and passes them to the
// process group of the command. It holds the other as long as it lives, so that no other
// process with its pid is taken for it, and tells there that the record has a new control line
// of an action (see package perilog). When the command has ended, the shim ends what it left:
// SIGTERM, and SIGKILL after a second. If the shim is killed, the next look at the record
// kills what it leaves, and the task is lost.
//
// On Linux what a command leaves is found wherever it hides: the shim adopts orphans, and each
// process has a token in its environment. On other Unix systems only the process group is
// found, and not what a killed shim leaves. Other systems are not supported. A service under
// systemd needs KillMode=process.
package proc

// env names the token of a task in the environment of its processes.
const env = "JOBLIFE_TASK_TOKEN"

// asEnv tells a shim how its command runs.
const asEnv = "JOBLIFE_TASK_AS"

// shimName is argv[0] of a shim.
const shimName = "joblife-shim"

// crash is where a test kills this program or a shim.
var crash = func(point string) {}
