// Package proc runs the tasks of a node as processes that outlive the program.
//
//	func main() {
//		proc.Shim() // before anything else
//		cluster, err := proc.NewCluster(dir, n, put, warn)
//		cluster.Recover(left) // of joblife.Restore
//		cluster.Do(rd)        // each joblife.Ready
//		err = cluster.Connect()
//	}
//
// A Cluster is nodes of this machine and the executor of a manager in the same program. Each
// task has a shim, which is this program again: it starts the command, waits for it, and
// writes its status to a record. A task that the program started before it was killed is in
// the hello of its node in the next life, running or with its status. Nothing runs twice: the
// record is on the disk before the shim starts.
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

// shimName is argv[0] of a shim.
const shimName = "joblife-shim"

// crash is where a test kills this program or a shim.
var crash = func(point string) {}
