# The jobs of ./soak, what happens to them, and what is checked of them.
import collections
import glob
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import flux
import flux.job
from flux.idset import IDset

DIR = os.environ["SOAK_DIR"]
JOBS = int(os.environ["SOAK_JOBS"])
rng = random.Random(1)
over = threading.Event()
kills = 0


def command(*args):
    return subprocess.run(["flux", *args], capture_output=True, text=True)


def kill():
    """Kills the worker again and again."""
    global kills
    while not over.wait(float(os.environ["SOAK_KILL"])):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/exe") == f"{DIR}/bin/manager" and b"JOBLIFE_WORKER=" in open(f"/proc/{pid}/environ", "rb").read():
                    os.kill(int(pid), signal.SIGKILL)
                    kills += 1
            except OSError:
                pass  # it has ended, or is of somebody else


def operate():
    """Drains nodes and stops queues for a while, again and again."""
    rng = random.Random(2)
    while not over.wait(2):
        rank, queue = str(rng.randrange(8)), rng.choice(["batch", "debug"])
        command("resource", "drain", rank, "soak")
        command("queue", "stop", queue, "-m", "soak")
        over.wait(1)
        command("queue", "start", queue)
        command("resource", "undrain", rank)


def submit(h, before):
    kind = rng.random()
    nodes = 1 if kind < 0.7 else 2 if kind < 0.9 else rng.randint(3, 4)
    spec = flux.job.JobspecV1.from_command(["true"], num_tasks=nodes, num_nodes=nodes if kind > 0.4 else None, exclusive=kind > 0.4)
    spec.setattr("system.exec.test.run_duration", f"{rng.uniform(0.01, 0.4)}s")
    spec.setattr("system.queue", rng.choice(["batch", "debug"]))
    spec.duration = 60
    if before and rng.random() < 0.05:
        spec.setattr("system.dependencies", [{"scheme": "afterany", "value": before.f58}])
    return flux.job.submit(h, spec, urgency=0 if rng.random() < 0.05 else rng.randint(10, 20)), nodes


def meddle(h, id):
    """Changes a job that may be over, so that it may be refused."""
    what = rng.random()
    try:
        if what < 0.3:
            flux.job.cancel(h, id)
        elif what < 0.6:
            h.rpc("job-manager.urgency", {"id": id, "urgency": rng.choice([0, 16, 30])}).get()
        else:
            h.rpc("job-manager.update", {"id": id, "updates": {"attributes.system.duration": rng.randint(50, 90)}}).get()
    except OSError:
        pass


def run():
    h = flux.Flux()
    threads = [threading.Thread(target=kill), threading.Thread(target=operate)]
    for t in threads:
        t.start()
    ids = []
    try:
        while len(ids) < JOBS:
            waiting = h.rpc("job-manager.stats-get").get()["active_jobs"]
            for _ in range(min(50, JOBS - len(ids), max(0, 300 - waiting))):
                ids.append(submit(h, ids and ids[-1])[0])
                if rng.random() < 0.15:
                    meddle(h, rng.choice(ids[-100:]))
            print(f"\rsoak: {len(ids)} of {JOBS} jobs, {kills} kills ", end="", file=sys.stderr)
            time.sleep(0.5)
        for id in ids:  # those that are held
            try:
                h.rpc("job-manager.urgency", {"id": id, "urgency": 16}).get()
            except OSError:
                pass  # it is over
    finally:
        over.set()
        for t in threads:
            t.join()
    print(file=sys.stderr)
    drain = command("queue", "drain", "--timeout=300s")
    if drain.returncode != 0:
        sys.exit(f"soak: jobs are left: {drain.stderr}\n{command('jobs', '-A').stdout}")
    return h, ids


def check(h, ids):
    bad = []
    for _ in range(100):  # housekeeping goes on after a job
        held = command("resource", "list", "-s", "allocated", "-no", "{ranks}").stdout.strip()
        if not held:
            break
        time.sleep(0.2)
    else:
        bad.append(f"ranks {held} are held at the end")
    uses, results = collections.defaultdict(list), collections.Counter()  # by rank and core; how jobs ended
    for id in ids:
        log = flux.job.job_kvs_lookup(h, id, keys=["eventlog"])["eventlog"]
        with open(f"{DIR}/logs/{int(id)}", "w") as f:
            f.write(log)
        events = [json.loads(line) for line in log.splitlines()]
        count = collections.Counter(e["name"] for e in events)
        once = ["submit", "validate", "clean"] + (["alloc", "free"] if count["alloc"] else [])
        if any(count[name] != 1 for name in once) or any(n > 1 for name, n in count.items() if name in ("start", "finish", "free", "epilog-start")):
            bad.append(f"{id}: {dict(count)}")
        results["ran" if count["finish"] else "did not run"] += 1
        if not count["alloc"] or not count["free"]:
            continue
        at = {e["name"]: e["timestamp"] for e in events}
        free = {rank: e["timestamp"] for e in events if e["name"] == "perilog-release" for rank in IDset(e["context"]["ranks"])}
        for part in flux.job.job_kvs_lookup(h, id, keys=["R"])["R"]["execution"]["R_lite"]:
            for rank in IDset(part["rank"]):
                for core in IDset(part["children"]["core"]):
                    uses[rank, core].append((at["alloc"], free.get(rank, at["free"]), id))
    for where, times in uses.items():
        times.sort()
        bad += [f"{a} and {b} had core {where} at {start}" for (_, end, a), (start, _, b) in zip(times, times[1:]) if start < end]

    # On the nodes: no action of a job with whole nodes runs beside one of another job.
    whole = {id.f58 for id in ids for e in [flux.job.job_kvs_lookup(h, id, keys=["jobspec"])["jobspec"]] if e["resources"][0].get("exclusive")}
    seen = 0
    for name in glob.glob(f"{DIR}/seen/*"):
        times = {}
        for line in open(name):
            id, _, _, t = line.split()
            first, last = times.get(id, (float(t), 0))
            times[id] = min(first, float(t)), max(last, float(t))
            seen += 1
        spans, latest = sorted((first, last, id) for id, (first, last) in times.items()), (0, 0, "")
        for span in spans:
            if span[0] < latest[1] and (span[2] in whole or latest[2] in whole):
                bad.append(f"{latest[2]} and {span[2]} were on rank {os.path.basename(name)} at {span[0]}")
            latest = max(latest, span, key=lambda s: s[1])
    print(f"soak: {len(ids)} jobs ({', '.join(f'{n} {r}' for r, n in sorted(results.items()))}), {kills} kills, {seen} lines of actions, {len(bad)} faults")
    for text in bad[:20]:
        print("soak:", text)
    return not bad


sys.exit(0 if check(*run()) else 1)
