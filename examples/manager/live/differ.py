# The stories of ./differ: each prints the same in two instances of which one has another job manager.
import json
import os
import random
import re
import time

import flux
import flux.job

QUEUES = ["batch", "debug"] if os.environ["DIFFER_QUEUES"] == "queues" else []
LISTED = 2 | 4 | 8 | 16 | 32  # active states

owner = flux.Flux()
os.environ.update(FLUX_HANDLE_ROLEMASK="0x2", FLUX_HANDLE_USERID="1001")
guest = flux.Flux()
ids = []  # of the jobs of a story


def tell(*what):
    """Prints without what differs from instance to instance: ids and times."""
    text = json.dumps(what, sort_keys=True, ensure_ascii=False)
    for i, id in enumerate(ids):
        text = text.replace(flux.job.JobID(id).f58, f"J{i}").replace(flux.job.JobID(id).f58plain, f"J{i}")
        text = re.sub(rf"(?<!\d){id}(?!\d)", f"J{i}", text)
    print(re.sub(r'"(t_\w+|expiration|starttime)": [0-9.]+', r'"\1": T', text), flush=True)


def ask(h, topic, payload, timeout=-1):
    try:
        return h.rpc(topic, payload).wait_for(timeout).get()
    except OSError as e:
        return [e.errno, e.strerror]


def logs():
    return [ask(owner, "job-info.lookup", {"id": id, "keys": ["eventlog"], "flags": 0}) for id in ids]


def settle():
    """Waits until the logs grow no more, and returns them."""
    last, same = None, 0
    while same < 5:
        now = logs()
        same = same + 1 if now == last else 0
        last = now
        time.sleep(0.04)
    return last


def jobspec(rng):
    n = rng.choice([1, 1, 2, 4, 5, 9])
    nodes = n if rng.random() < 0.4 else None
    spec = flux.job.JobspecV1.from_command(["true"], num_tasks=n, num_nodes=nodes, exclusive=bool(nodes) and rng.random() < 0.5)
    test = {"run_duration": rng.choice(["0.001s", "1000s"])}
    if rng.random() < 0.05:
        test["mock_exception"] = rng.choice(["init", "starting", "run"])
    spec.setattr("system.exec.test", test)
    if rng.random() < 0.4:
        spec.duration = rng.choice([30, 60, 3600])
    dependencies = []
    while rng.random() < 0.25:
        scheme = rng.choice(["afterany", "afterok", "afternotok", "after", "afterexcept", "singleton", "begin-time", "nonsense"])
        job = flux.job.JobID(rng.choice(ids)).f58 if ids and rng.random() < 0.9 else rng.choice(["1", "ƒzzz", "foo"])
        value = {"begin-time": rng.choice(["1", "4000000000", "x"]), "singleton": "x"}.get(scheme, job)
        dependencies.append({"scheme": scheme, "value": value})
    if dependencies:
        spec.setattr("system.dependencies", dependencies)
    if QUEUES and rng.random() < 0.8:
        spec.setattr("system.queue", rng.choice(QUEUES + ["nope"]))
    if rng.random() < 0.2:
        spec.setattr("system.job.name", rng.choice(["a", "b"]))
    if rng.random() < 0.1:
        spec.setattr("system.constraints", rng.choice([{"hostlist": ["node0"]}, {"properties": ["none"]}, {"not": [{"hostlist": ["node0"]}]}, {"x": 1}]))
    return spec


def submit(rng):
    spec = jobspec(rng)
    try:
        ids.append(int(flux.job.submit(owner, spec, urgency=rng.choice([16] * 6 + [0, 31, 1, 20]), waitable=rng.random() < 0.2)))
        return "ok"
    except OSError as e:
        return [e.errno, e.strerror, spec.jobspec["attributes"]["system"].get("dependencies")]


def request(rng):
    """Returns a topic and a payload."""
    id = rng.choice(ids) if ids and rng.random() < 0.95 else rng.choice([0, 1, 123456789])
    queue = {"name": rng.choice(QUEUES + ["nope"])} if rng.random() < (0.7 if QUEUES else 0.1) else {}
    because = {"reason": "busy"} if rng.random() < 0.5 else {}
    flip = {"all": rng.random() < 0.3, **queue, **because}
    keys = {
        "id": id, "type": "x", "severity": 1, "note": None, "userid": -1, "states": 8, "dry_run": True, "signum": 15, "urgency": 3.5, "updates": [], "memo": 7,
        "volatile": 1, "name": "", "start": {}, "enable": [1], "reason": 0, "max_entries": "x", "attrs": {}, "constraint": [], "flags": True,
    }
    some = {k: keys[k] for k in rng.sample(sorted(keys), rng.randrange(5))}
    return rng.choice([
        ("raise", {"id": id, "type": "cancel", "severity": 0, "note": "bye"}),
        ("raise", {"id": id, "type": rng.choice(["foo", "timeout", "bad type", ""]), "severity": rng.choice([0, 1, 7, 8, -1]), "note": rng.choice(["", "why"])}),
        ("kill", {"id": id, "signum": rng.choice([15, 9, 0, 99])}),
        ("urgency", {"id": id, "urgency": rng.choice([0, 16, 31, 20, 1, 32, -1])}),
        ("update", {"id": id, "updates": {"attributes.system.duration": rng.choice([10, 100, 0, -1, "x"])}}),
        ("update", {"id": id, "updates": {"attributes.system.queue": rng.choice(["batch", "debug", "nope"])}}),
        ("update", {"id": id, "updates": rng.choice([{"attributes.system.foo": 1}, {"resources": []}, {"foo": 1}])}),
        ("memo", {"id": id, "volatile": rng.random() < 0.3, "memo": rng.choice([{"a": 1}, {"a": {"c": 2}}, {}])}),
        ("queue-start", {"start": rng.random() < 0.55, **flip}),
        ("queue-enable", {"enable": rng.random() < 0.55, **flip}),
        ("queue-status", queue),
        ("queue-list", None),
        ("alloc-query", None),
        ("list", {"max_entries": 0}),
        ("wait", {"id": rng.choice([id, 0])}),
        ("getattr", {"id": id, "attrs": rng.choice([["nope"], []])}),
        ("raiseall", {"dry_run": rng.random() < 0.6, "userid": rng.choice([0xFFFFFFFF, 0, 5]), "states": rng.choice([0, 1, 4, 16, 32, 255]), "severity": 3, "type": "foo"}),
        (rng.choice("raise raiseall kill urgency update memo queue-start queue-enable queue-status list wait getattr purge nosuch".split()), some),
    ])


def story(rng):
    """Makes requests, and tells what came of them. Not among them are those that differ on purpose:
    a memo with null, which ours logs; an update of nothing, of which ours logs none; and jobs with
    the flag debug, of which flux-core logs each time that it asks for them again."""
    ids.clear()
    for _ in range(rng.randrange(6, 22)):
        if rng.random() < 0.35:
            tell("submit", submit(rng))
        elif rng.random() < 0.1:
            what, rank = rng.choice(["drain", "undrain"]), rng.randrange(4)
            ask(owner, "resource." + what, {"targets": str(rank), **({"reason": "r"} if what == "drain" else {})})
        else:
            h = guest if rng.random() < 0.15 else owner
            topic, payload = request(rng)
            answer = ask(h, "job-manager." + topic, payload, 0.5)
            if topic == "list" and isinstance(answer, dict):  # in an order of its own, with jobs of earlier stories
                answer = sorted((j for j in answer["jobs"] if j["state"] & LISTED and j["id"] in ids), key=lambda j: j["id"])
            tell("guest" if h is guest else "owner", topic, payload, answer)
        settle()
    for i, log in enumerate(settle()):
        for line in log["eventlog"].splitlines():
            event = json.loads(line)
            tell(i, event["name"], event.get("context"))
    for id in ids:
        tell(ask(owner, "job-list.list-id", {"id": id, "attrs": ["all"]}))
    for id in ids:
        ask(owner, "job-manager.raise", {"id": id, "type": "cancel", "severity": 0})
    settle()
    for rank in range(4):
        ask(owner, "resource.undrain", {"targets": str(rank)})
    for name in [{"name": q} for q in QUEUES] or [{}]:
        ask(owner, "job-manager.queue-start", {"start": True, "all": False, **name})
        ask(owner, "job-manager.queue-enable", {"enable": True, "all": False, **name})
    while any('"clean"' not in log["eventlog"] for log in logs()):
        time.sleep(0.02)


for seed in range(int(os.environ["DIFFER_RUNS"])):
    seed += int(os.environ["DIFFER_SEED"])
    print("seed", seed)
    story(random.Random(seed))
