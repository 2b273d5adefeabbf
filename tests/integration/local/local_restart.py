#!/usr/bin/env python3
"""kill -9 of drover-local and a restart on the same root: jobs ran on without it, their ends are found, names
stay taken, slots stay counted, wire log and invoice are complete, delayed effects still happen.
"""
import os
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import wait_for
from kit.local import error_of, lost, run, same, sign


def test_jobs__go_on_while_it_is_dead_and_their_ends_are_found(l):
    l.create("ok", "sleep 0.6; echo done; echo m > $DROVER_ML_ROOT/model/m")
    l.create("bad", "sleep 0.6; echo why > $DROVER_ML_ROOT/output/failure; exit 4")
    l.create("long", "sleep 1.6")
    for n in ("ok", "bad", "long"):
        l.running(n)
    before = l.job("long")
    l.kill()
    marks = os.path.join(l.root, "state", "marks")
    wait_for(lambda: {"ok.end", "bad.end"} <= set(os.listdir(marks)), 60, "the ends while nobody serves")
    time_dead = time.time()
    l.start()
    d = l.ended("ok")
    same(d["TrainingJobStatus"], "Completed")
    assert d["TrainingEndTime"].timestamp() < time_dead, "the end is when it ended, not when it was found"
    same(l.ended("bad")["FailureReason"], "AlgorithmError: why\n, exit code: 4")
    same(l.job("long")["started"], before["started"])
    same(l.ended("long")["TrainingJobStatus"], "Completed")
    l.s3.head_object(Bucket="bkt", Key="out/ok/output/model.tar.gz")
    same({x["name"]: x["seconds"] for x in l.get("invoice")["lines"]},
         {n: l.describe(n)["BillableTimeInSeconds"] for n in ("ok", "bad", "long")})
    for n in ("ok", "bad", "long"):
        same(error_of(l.create, n)[0], "ResourceInUse")
    same(sorted(q["name"] for q in l.wire("CreateTrainingJob") if q["accepted"]), ["bad", "long", "ok"])


def test_quota__is_still_counted(l):
    [l.create("q-%d" % i, "sleep 30") for i in range(4)]
    l.kill()
    l.start()
    same(error_of(l.create, "q-4")[0], "ResourceLimitExceeded")


def test_starting_job__is_started_by_the_next_one(l):
    l.create("s")
    same(l.describe("s")["SecondaryStatus"], "Starting")
    l.kill()
    l.start()
    same(l.ended("s")["TrainingJobStatus"], "Completed")


def test_stop__asked_before_the_kill_is_carried_out(l):
    l.create("s", "exec sleep 60")
    l.running("s")
    l.sm.stop_training_job(TrainingJobName="s")
    l.kill()
    l.start()
    same(l.ended("s")["TrainingJobStatus"], "Stopped")
    l.create("t", "exec sleep 60")
    l.running("t")
    l.kill()
    l.start()
    l.sm.stop_training_job(TrainingJobName="t")
    same(l.ended("t")["TrainingJobStatus"], "Stopped")


def test_tags_transitions_and_times__survive(l):
    arn = l.create("t", "exit 1", Tags=[{"Key": "a", "Value": "1"}])["TrainingJobArn"]
    l.ended("t")
    l.sm.add_tags(ResourceArn=arn, Tags=[{"Key": "b", "Value": "2"}])
    d = l.describe("t")
    jobs, invoice = l.get("jobs"), l.get("invoice")
    l.kill()
    l.start()
    e = l.describe("t")
    d.pop("ResponseMetadata"), e.pop("ResponseMetadata")
    same(e, d)
    same((l.get("jobs"), l.get("invoice")), (jobs, invoice))
    same(len(l.sm.list_tags(ResourceArn=arn)["Tags"]), 2)


def test_supervisor_killed__job_is_lost_as_an_internal_error(l):
    l.create("v", "sleep 60; true")
    l.running("v")
    pids = wait_for(lambda: [int(p) for p in os.listdir("/proc") if p.isdigit() and supervises(p, l.root)], 5,
                    "its supervisor")
    os.kill(pids[0], signal.SIGKILL)
    d = l.ended("v")
    same(d["FailureReason"], "InternalServerError: We encountered an internal error. Please try again.")
    assert d["BillableTimeInSeconds"] >= 1
    wait_for(lambda: not any(inside(p, l.root) for p in os.listdir("/proc") if p.isdigit()), 5, "its process to go")


def supervises(pid, root):
    try:
        words = open("/proc/%s/cmdline" % pid, "rb").read().split(b"\0")
    except OSError:
        return False
    return len(words) > 2 and words[1] == b"supervise" and words[2].startswith(root.encode())


def inside(pid, root):
    try:
        return os.readlink("/proc/%s/cwd" % pid).startswith(root + "/jobs")
    except OSError:
        return False


def test_delayed_effect__comes_after_the_restart(l):
    l.faults({"operation": "CreateTrainingJob", "kind": "effect_delayed", "delay_seconds": 1})
    lost(l.create, "late")
    l.kill()
    l.start()
    wait_for(lambda: l.job("late"), 10, "the effect")
    same(l.ended("late")["TrainingJobStatus"], "Completed")
    same([q["accepted"] for q in wait_for(lambda: l.wire("CreateTrainingJob", "late"), 5, "its line")], [True])
    l.kill()
    l.start()
    same(len(l.get("jobs")["jobs"]), 1)


def test_killed_in_a_rush__what_was_acknowledged_is_there_and_made_once(l):
    acked, asked, stop = [], [], threading.Event()

    def work(k, sm):
        i = 0
        while not stop.is_set():
            name = "r-%d-%d" % (k, i)
            asked.append(name)
            try:
                sm.create_training_job(**l.request(name))
                acked.append(name)
            except Exception:  # noqa: BLE001 killed under it
                pass
            i += 1
    for round_ in range(4):
        stop.clear()
        threads = [threading.Thread(target=work, args=(round_ * 4 + k, l.sm)) for k in range(4)]
        [t.start() for t in threads]
        n = len(acked)
        wait_for(lambda n=n: len(acked) > n + 20, 20, "some acknowledgements")
        l.process.kill()
        stop.set()
        [t.join() for t in threads]
        l.kill()
        l.start()
        jobs = [j["name"] for j in l.get("jobs")["jobs"]]
        same(len(jobs), len(set(jobs)))
        assert set(acked) <= set(jobs), set(acked) - set(jobs)
        made = [q["name"] for q in l.wire("CreateTrainingJob") if q["accepted"]]
        same(sorted(made), sorted(jobs))  # also those without an answer
        assert set(jobs) <= set(asked)
    wait_for(lambda: all(j["released"] for j in l.get("jobs")["jobs"]), 60, "all to end")


def test_job_without_its_wire_line__gets_it_back(l):
    l.create("x", "sleep 1")
    l.kill()
    log = os.path.join(l.root, "wire.log")
    with open(log) as f:
        lines = f.readlines()
    same(sum('"accepted":true' in x for x in lines), 1)
    with open(log, "w") as f:  # as if killed after the journal's line and before this one
        f.writelines(x for x in lines if '"accepted":true' not in x)
    l.start()
    same([(q["accepted"], q["replied"], q["signed"]) for q in l.wire("CreateTrainingJob", "x")], [(True, False, True)])
    l.kill()
    l.start()
    same(len(l.wire("CreateTrainingJob", "x")), 1)


def test_torn_lines__are_cut_off(l):
    l.run("a")
    l.kill()
    for f in ("state/journal.jsonl", "wire.log"):
        with open(os.path.join(l.root, f), "a") as out:
            out.write('{"t":"job","job":{"name":"a","sta')
    n = sum(1 for _ in open(os.path.join(l.root, "wire.log"))) - 1
    l.start()
    same(len(l.wire()), n)
    same(l.describe("a")["TrainingJobStatus"], "Completed")
    l.run("b")
    l.kill()
    l.start()
    same([j["name"] for j in l.get("jobs")["jobs"]], ["a", "b"])


def test_half_an_upload__is_no_object_and_leaves_nothing(l):
    h = sign(l.url, "s3", "PUT", "/bkt/half", body=b"x" * 1000000)
    s = socket.create_connection(("127.0.0.1", l.port))
    s.sendall(b"PUT /bkt/half HTTP/1.1\r\n" + b"".join(b"%s: %s\r\n" % (k.encode(), v.encode()) for k, v in h.items()) +
              b"Host: 127.0.0.1:%d\r\nContent-Length: 1000000\r\n\r\n" % l.port + b"x" * 300000)
    tmp = os.path.join(l.root, "s3", ".tmp")
    wait_for(lambda: os.listdir(tmp), 5, "the body to begin")
    l.kill()
    s.close()
    l.start()
    same((os.listdir(tmp), error_of(l.s3.head_object, Bucket="bkt", Key="half")[2]), ([], 404))


def test_term__ends_it_cleanly_and_leaves_the_jobs(l):
    l.create("x", "sleep 0.5")
    l.running("x")
    l.process.terminate()
    same(l.process.wait(10), 0)
    l.process.stdout.close()
    l.start()
    same(l.ended("x")["TrainingJobStatus"], "Completed")


run([(t, c) for t, c in [
    (test_jobs__go_on_while_it_is_dead_and_their_ends_are_found, {}),
    (test_quota__is_still_counted, {}),
    (test_starting_job__is_started_by_the_next_one, {"cold_start_seconds": 0.4}),
    (test_stop__asked_before_the_kill_is_carried_out, {}),
    (test_tags_transitions_and_times__survive, {}),
    (test_supervisor_killed__job_is_lost_as_an_internal_error, {}),
    (test_delayed_effect__comes_after_the_restart, {}),
    (test_killed_in_a_rush__what_was_acknowledged_is_there_and_made_once, {"quotas": {"ml.m5.large": 1000}}),
    (test_job_without_its_wire_line__gets_it_back, {}),
    (test_torn_lines__are_cut_off, {}),
    (test_half_an_upload__is_no_object_and_leaves_nothing, {}),
    (test_term__ends_it_cleanly_and_leaves_the_jobs, {}),
]])
