#!/usr/bin/env python3
"""POST /campaigns/{id}/parts. Aim: a request adds all of its lines as parts or none, each wrong line is
named, large batches get their own partitions, a key is answered once. Method: the API's own server program
over a real PostgreSQL.
"""
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import patience, wait_for
from kit.api import Api, main, spec


def lines(n, first=0):
    return b"".join(b'{"uri":"s3://laion/part-%07d.parquet","size":%d}\n' % (i, 1000 + i) for i in range(first, first + n))


def new(a, name="bulk"):
    s, b, _ = a.submit(spec(name, "{from: api}"))
    assert s == 201, b
    return b["id"]


def put(a, cid, body, query="", headers=None, **kw):
    return a.call("POST", f"/v1/campaigns/{cid}/parts{query}", body, {"Content-Type": "application/x-ndjson", **(headers or {})}, **kw)


def count(a, cid):
    return int(a.sql(f"SELECT count(*) FROM task WHERE campaign_id = {cid[2:]}"))


def check_lines(t, a):
    cid = new(a)
    body = (b'{"uri":"s3://b/0","size":7}\n' b' { "size" : 8 , "uri" : "s3://b/1" } \r\n' b"\n" b'{"uri":"s3://b/\\u00e9","vars":{"k":"v\\"w"}}\n'
            b'{"uri":"s3://b/\xc3\xa9","size":0}\n' b'{"uri":"http://h/%20","vars":{}}')
    s, b, _ = put(a, cid, body)
    t.eq((s, b), (201, {"parts": 5, "total": 5, "closed": False}), "lines flat, spaced, with vars, with UTF-8, without a last newline")
    got = a.sql(f"SELECT seq, uri, size, vars FROM task WHERE campaign_id = {cid[2:]} ORDER BY seq")
    t.eq(got, '0|s3://b/0|7|\n1|s3://b/1|8|\n2|s3://b/é|0|{"k": "v\\"w"}\n3|s3://b/é|0|\n4|http://h/%20|0|', "are stored as they were sent")
    s, b, _ = put(a, cid, lines(3), "?last=true&stage=download")
    t.eq((s, b), (201, {"parts": 3, "total": 8, "closed": True}), "a second batch goes on counting, ?last=true closes")
    marked = new(a)
    s, b, _ = put(a, marked, b"\xef\xbb\xbf" + lines(2))
    t.eq((s, b.get("parts")), (201, 2), "lines behind the mark that editors put before UTF-8 are read")
    s, b, _ = put(a, marked, b"\xef\xbb\xbf")
    t.eq((s, b.get("parts")), (201, 0), "also when there are none")
    s, b, _ = put(a, marked, lines(1) + b"\xef\xbb\xbf" + lines(1))
    t.eq((s, [e["line"] for e in b.get("errors", [])]), (422, [2]), "but the mark has no place further on")
    t.eq(a.sql(f"SELECT min(seq), max(seq), count(DISTINCT seq), count(DISTINCT id) FROM task WHERE campaign_id = {cid[2:]}"), "0|7|8|8", "part numbers and ids are whole")
    s, b, _ = put(a, cid, lines(1))
    t.ok(s == 409 and "closed" in b["detail"], "a closed stage: 409", b)
    ids = a.sql(f"SELECT array_agg(id ORDER BY seq) = array_agg(id ORDER BY id) FROM task WHERE campaign_id = {cid[2:]}")
    t.eq(ids, "t", "ids follow part numbers")


def check_bad(t, a):
    cid = new(a)
    bad = [b"nonsense", b"[]", b'{"size":1}', b'{"uri":""}', b'{"uri":5}', b'{"uri":"x","size":-1}', b'{"uri":"x","size":1.5}', b'{"uri":"x","size":"1"}', b'{"uri":"x","more":1}',
           b'{"uri":"x","uri":"y"}', b'{"uri":"x","size":1,"size":2}', b'{"uri":"x"} {"uri":"y"}', b'{"uri":"x"},', b'{"uri":"x","vars":[]}', b'{"uri":"x","vars":{"a":1}}',
           b'{"uri":"a\\u0000b"}', b'{"uri":"a\\nb"}', b'{"uri":"\xff"}', b'{"uri":"' + b"x" * 5000 + b'"}', b'{"uri":"x","size":99999999999999999999}', b'{"uri":"x","size":01}',
           b'{"uri":"x"', b'{"uri"}', b'"x"', b'{"uri":"x","vars":{' + b",".join(b'"k%d":"v"' % i for i in range(40)) + b"}}", b'{"uri":"' + b"x" * 70000 + b'"}']
    body = b"".join(b'{"uri":"s3://good/%d"}\n%s\n' % (i, x) for i, x in enumerate(bad))
    s, b, _ = put(a, cid, body)
    t.eq((s, [e["line"] for e in b.get("errors", [])]), (422, [2 * (i + 1) for i in range(len(bad))]), f"each of {len(bad)} wrong lines is named, no good one")
    t.ok(all(e["message"] and e["hint"] for e in b["errors"]), "with what is wrong and what to write")
    t.eq((count(a, cid), a.sql(f"SELECT tasks FROM stage_input WHERE campaign_id = {cid[2:]}")), (0, "0"), "nothing was added")
    s, b, _ = a.submit(spec("vars", "{from: api, vars: [run]}", extra='    environment: {RUN: "{run}"}'))
    s, b, _ = put(a, b["id"], b'{"uri":"s3://b/0","vars":{"run":"a"}}\n{"uri":"s3://b/1","vars":{"ran":"run"}}\n{"uri":"s3://b/2"}\n{"uri":"s3://b/3","vars":{"run":"' + b"a" * 513 + b'"}}')
    t.eq((s, [(e["line"], e["message"][:26]) for e in b.get("errors", [])]), (422, [(2, "vars has no 'run', which a"), (3, "vars has no 'run', which a"), (4, "RUN is 513 bytes long; Cre")]),
         "lines of which no request can be made: the variable, the limit")
    s, b, _ = put(a, cid, b"x\n" * 1000)
    t.ok(s == 422 and len(b["errors"]) == 64 and b["errors_dropped"] == 936, "a thousand faults: 64 shown, the rest counted")
    for body in (b"", b"\n\n"):
        t.eq(put(a, cid, body)[:2], (201, {"parts": 0, "total": 0, "closed": False}), "no lines: no parts")
    s, b, _ = a.submit(spec("fixed"))
    s, b, _ = put(a, b["id"], lines(1))
    t.ok(s == 409 and "fan_out" in b["detail"], "a stage with its own fan_out takes none", b)
    t.eq(put(a, "c-999", lines(1))[0], 404, "no such campaign")
    t.eq(put(a, cid, lines(1), "?stage=nope")[0], 404, "no such stage")
    t.eq(put(a, cid, lines(1), "?last=1")[0], 400, "last=1 is refused")
    a.post(f"/v1/campaigns/{cid}:cancel")
    a.sql(f"UPDATE campaign_run SET state = 'cancelled' WHERE campaign_id = {cid[2:]}")
    t.eq(put(a, cid, lines(1))[0], 409, "an ended campaign: 409")


def check_keys(t, a):
    cid = new(a)
    key = {"Idempotency-Key": str(uuid.uuid4())}
    one = put(a, cid, lines(10), headers=key)
    two = put(a, cid, lines(10), headers=key)
    t.ok(one[:2] == two[:2] and count(a, cid) == 10, "a keyed batch is added once", (one, two))
    t.eq(put(a, cid, lines(11), headers=key)[0], 422, "the key with other lines: 422")
    t.eq(put(a, cid, lines(10), "?last=true", headers=key)[0], 422, "and with another query")
    put(a, cid, lines(10))
    t.eq(count(a, cid), 20, "without a key the lines are new parts")
    got, totals = [], []

    def one_of_six(i):
        s, b, _ = put(a, cid, lines(2000, i * 2000))
        got.append(s)
        totals.append(b["total"])

    lock = subprocess.Popen(a.pg.psql(a.db), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lock.stdin.write(f"BEGIN; SELECT 'held' FROM stage_input WHERE campaign_id = {cid[2:]} FOR UPDATE;\n")
    lock.stdin.flush()
    lock.stdout.readline()
    threads = [threading.Thread(target=one_of_six, args=(i,)) for i in range(6)]
    for x in threads:
        x.start()
    wait_for(lambda: int(a.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")) >= 2, 10)  # they have begun
    lock.communicate("COMMIT;\n")
    for x in threads:
        x.join()
    t.eq(sorted(totals), [2020 + 2000 * i for i in range(6)], "each answer's total is that after its own batch")
    t.eq((got, count(a, cid)), ([201] * 6, 12020), "six batches at once: all are in")
    t.eq(a.sql(f"SELECT min(seq), max(seq), count(DISTINCT seq), count(DISTINCT id) FROM task_run WHERE campaign_id = {cid[2:]}"), "0|12019|12020|12020", "and no number twice")


def few_of_many(t, a, cid):
    """200 parts that are done, 300 tried twice among a quarter of a million: every one is on a page, pages are full, in both directions."""
    rng = random.Random(7)
    done = sorted({0, 270004, *rng.sample(range(270005), 200)})
    tried = sorted(rng.sample(range(100000, 200000), 300))
    a.sql(f"UPDATE task_run SET state = 3 WHERE campaign_id = {cid[2:]} AND seq = ANY ('{{{','.join(map(str, done))}}}')")
    a.sql(f"UPDATE task_run SET attempts = 2 WHERE campaign_id = {cid[2:]} AND seq = ANY ('{{{','.join(map(str, tried))}}}')")
    a.sql(f"UPDATE stage_run SET taken = 270005, waiting = 270005 - {len(done)}, done = {len(done)} WHERE campaign_id = {cid[2:]}")
    for what, wanted in (("state=done", done), ("state=done&order_by=id%20desc", done[::-1]), ("state=done&stage=download", done), ("filter=attempts%3E%3D2", tried),
                         ("filter=state%3Dwaiting%20AND%20attempts%3E%3D2", [n for n in tried if n not in done]), ("filter=attempts%3E%3D3", [])):
        found, sizes, token = [], [], ""
        while token is not None and len(sizes) < 20:
            b = a.get(f"/v1/campaigns/{cid}/parts?{what}&page_size=50{token}")[1]
            found += [p["seq"] for p in b["parts"]]
            sizes.append(len(b["parts"]))
            token = b["next_page_token"] and "&page_token=" + b["next_page_token"]
        t.ok(found == wanted, f"{what}: all {len(wanted)} are found", (len(found), sorted(set(wanted) ^ set(found))[:5]))
        t.ok(all(0 < n <= 50 for n in sizes[:-1]) and len(sizes) <= len(wanted) // 50 + 3, f"on {len(sizes)} pages, of which none but the last is empty", sizes)
    found, pages, token = [], 0, ""
    while token is not None:
        b = a.get(f"/v1/campaigns/{cid}/parts?filter=text%3Dpart-{done[3]:07d}%20AND%20state%3Ddone&page_size=50{token}")[1]
        found, pages, token = found + [p["seq"] for p in b["parts"]], pages + 1, b["next_page_token"] and "&page_token=" + b["next_page_token"]
    t.ok(found == [done[3]] and pages < 260, f"a text among those that are done: {pages} pages", (found, b))
    a.sql(f"UPDATE task_run SET state = 0, attempts = 0 WHERE campaign_id = {cid[2:]}")
    a.sql(f"UPDATE stage_run SET waiting = 270005, done = 0 WHERE campaign_id = {cid[2:]}")


def check_large(t, a):
    cid = new(a)
    began = time.monotonic()
    s, b, _ = put(a, cid, lines(150000))
    t.ok(s == 201 and b["parts"] == 150000, f"150,000 parts in {time.monotonic() - began:.2f} s", b)
    own = f"task_run_c{cid[2:]}"
    t.eq(a.sql(f"SELECT inhparent::regclass, pg_get_expr(relpartbound, c.oid) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhrelid = '{own}'::regclass"),
         f"task_run|FOR VALUES IN ('{cid[2:]}')", "they have a partition of their own")
    t.eq(a.sql(f"SELECT reloptions::text LIKE '%fillfactor=45%' FROM pg_class WHERE oid = '{own}'::regclass"), "t", "with room for HOT updates")
    t.eq(a.sql(f"SELECT count(*) FROM ONLY task_default WHERE campaign_id = {cid[2:]}"), "0", "and none elsewhere")
    s, b, _ = put(a, cid, lines(120000, 150000))
    t.ok(s == 201 and b["total"] == 270000 and count(a, cid) == 270000, "a second large batch goes into the same", b)
    s, b, _ = put(a, cid, lines(5, 270000), "?last=true")
    t.eq((s, b["total"]), (201, 270005), "and a small one")
    b = a.get(f"/v1/campaigns/{cid}/tiles")[1]
    t.ok(len(b["tiles"]) <= 2048 and sum(map(sum, b["tiles"])) == 270005, "tiles are sums", len(b["tiles"]))
    t.ok(len(a.raw("GET", f"/v1/campaigns/{cid}/tiles")[1]) < 40000, "of less than 40 kB")
    b = a.get(f"/v1/campaigns/{cid}")[1]
    t.eq(b["parts"]["total"], 270005, "the summary counts them")
    few_of_many(t, a, cid)
    for what in ("state=done", "filter=state%3Dwaiting%20AND%20attempts%3E%3D1"):
        seen, token, pages = 0, "", 0
        while pages < 40:
            b = a.get(f"/v1/campaigns/{cid}/parts?{what}&page_size=1000{token}")[1]
            pages += 1
            seen += len(b["parts"])
            if not b["next_page_token"]:
                break
            token = "&page_token=" + b["next_page_token"]
        t.ok(seen == 0 and pages <= 4, f"{what} finds nothing, on {pages} pages, where a map a few seconds old says that there were some")
    mixed = new(a)
    put(a, mixed, lines(10))
    s, b, _ = put(a, mixed, lines(100000))
    t.ok(s == 201 and count(a, mixed) == 100010, "a large batch behind a small one", b)


def check_wire(t, a):
    cid = new(a)
    with socket.create_connection(("127.0.0.1", a.port)) as c:
        c.sendall(f"POST /v1/campaigns/{cid}/parts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {a.token}\r\nContent-Length: 700000000\r\n\r\n".encode())
        t.ok(b" 413 " in c.recv(4096), "700 MB are refused before they are sent")
    with socket.create_connection(("127.0.0.1", a.port)) as c:
        c.sendall(f"POST /v1/campaigns/{cid}/parts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {a.token}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for part in (b'{"uri":"s3:', b'//b/1"}\n{"ur', b'i":"s3://b/2"}\n'):
            c.sendall(b"%x\r\n%s\r\n" % (len(part), part))
        c.sendall(b"0\r\n\r\n")
        t.ok(b" 201 " in c.recv(4096), "chunks cut anywhere are taken")
    t.eq(count(a, cid), 2, "as the lines they make")
    with socket.create_connection(("127.0.0.1", a.port)) as c:
        c.sendall(f"POST /v1/campaigns/{cid}/parts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {a.token}\r\nContent-Length: 1000\r\n\r\n".encode() + lines(3))
    t.eq(count(a, cid), 2, "a body cut short adds nothing")
    s, _, _ = put(a, cid, lines(3), token=False)
    t.eq(s, 401, "without a token: 401")
    with socket.create_connection(("127.0.0.1", a.port)) as c:
        c.sendall(f"POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        t.ok(re.match(rb"HTTP/1.1 4\d\d ", c.recv(4096)), "Content-Length beside Transfer-Encoding is refused")
    slow = socket.create_connection(("127.0.0.1", a.port))
    slow.settimeout(1)
    began, ended = time.monotonic(), False
    slow.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n")
    while not ended and time.monotonic() - began < patience(60):  # a header a second, without an end
        try:
            slow.sendall(b"X-More: 1\r\n")
            ended = slow.recv(4096) == b""
        except socket.timeout:
            pass
        except ConnectionError:
            ended = True
    t.ok(ended and 9 < time.monotonic() - began, "a head that never ends is cut off after 10 s, not before", time.monotonic() - began)
    t.eq(a.get("/livez")[0], 200, "the server is well")


def run(t, pg):
    a = Api(pg)
    a.objects("data", ["meta/p.parquet"])
    check_lines(t, a)
    check_bad(t, a)
    check_keys(t, a)
    check_large(t, a)
    check_wire(t, a)
    status, log = a.close()
    t.ok(status == 0, "the server ends cleanly", (status, log[-2000:]))


if __name__ == "__main__":
    main(run)
