# Runs the jobs of ./demo in an instance, or compares what it found with both managers.
import glob
import json
import os
import random
import sys
import time

import flux
import flux.job
from flux.idset import IDset

DIR = os.environ["DEMO_DIR"]
NODES = 16  # of a job


def run(side):
    """Submits the same jobs at the same times, waits for them, and writes what came of them."""
    h = flux.Flux()
    brokers = int(h.attr_get("size"))
    rng = random.Random(1)
    begin, at, ids = time.time(), 0.0, []
    for _ in range(int(os.environ["DEMO_JOBS"])):
        runtime = rng.uniform(5, 25)
        at += rng.expovariate(0.85 * (brokers / NODES) / 15)  # so many a second that nodes are busy for 85 % of the time
        slow = rng.choices([True, False], [1, 49], k=brokers)
        time.sleep(max(0, begin + at - time.time()))
        spec = flux.job.JobspecV1.from_command(["true"], num_tasks=NODES, num_nodes=NODES, cores_per_task=4)
        spec.setattr("system.exec.test.run_duration", f"{runtime}s")
        ids.append(flux.job.submit(h, spec, waitable=True))
        with open(f"{DIR}/slow", "a") as f:
            f.writelines(f"{ids[-1].f58} {rank}\n" for rank in range(brokers) if slow[rank])
    ends = {}
    for id in ids:
        if not flux.job.wait(h, id).success:
            sys.exit(f"demo: {id} failed")
        flux.job.event_wait(h, id, "clean")
    for name in glob.glob(f"{DIR}/ends.*"):
        for line in open(name):
            id, rank, end = line.split()
            ends.setdefault(id, {})[rank] = float(end)
    jobs = [{"ends": ends[id.f58], "log": flux.job.job_kvs_lookup(h, id, keys=["eventlog"])["eventlog"]} for id in ids]
    with open(f"{DIR}/{side}.json", "w") as f:
        json.dump(jobs, f)


def measure(side):
    """Returns the figures of a side: waits, node-seconds held idle, how long a node is held after a job, and the makespan."""
    waits, idle, held, times = [], 0.0, [], []
    for job in json.load(open(f"{DIR}/{side}.json")):
        at, free = {}, {}
        for e in map(json.loads, job["log"].splitlines()):
            at.setdefault(e["name"], e["timestamp"])
            if e["name"] == "perilog-release":
                for rank in IDset(e["context"]["ranks"]):
                    free.setdefault(str(rank), e["timestamp"])
        waits.append(at["alloc"] - at["submit"])
        times += [at["submit"], at["free"]]
        for rank, end in job["ends"].items():
            idle += max(0, free.get(rank, at["free"]) - end)
            held.append(free.get(rank, at["free"]) - at["finish"])
    return [
        sum(waits) / len(waits),
        sorted(waits)[int(0.95 * len(waits))],
        idle,
        sum(held) / len(held),
        max(times) - min(times),
    ]


def table():
    names = ["wait, mean", "wait, 95th percentile", "node-seconds held idle", "node free after its job, mean", "makespan"]
    print(f"{'':32}{'flux-core':>11}{'joblife':>11}{'difference':>12}")
    for name, stock, ours in zip(names, measure("stock"), measure("ours")):
        print(f"{name:32}{stock:10.1f}s{ours:10.1f}s{ours - stock:+11.1f}s")


run(sys.argv[2]) if sys.argv[1] == "run" else table()
