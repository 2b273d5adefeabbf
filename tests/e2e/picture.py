#!/usr/bin/python3
"""Makes orchestrator/web/screenshot.png, the README's picture: a campaign of 96 parts in mid-run, with parts that were
done before, parts that run and wait, and failures of three causes. Not a test; run it when the dashboard has changed.
usage: picture.py [FILE]"""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests"))
from kit.stack import Stack, wait_for  # noqa: E402

TYPE, PRICE, PARTS = "ml.c5.18xlarge", "3.67", 96
REASONS = {"12": "AlgorithmError: OSError: [Errno 28] No space left on device: '/opt/ml/tmp/00012.tar' (225 GB, 99 %), exit code: 1",
           "23": "AlgorithmError: KeyError: 'caption' in row 4211, exit code: 1", "31": "AlgorithmError: KeyError: 'caption' in row 97, exit code: 1"}


def spec(s, name, source):
    text = s.campaign(name=name, source="s3://drover-test/meta/*.parquet", top="project: laion\nlimits: {parts: 16}\nbudget: {total: 60 USD}")
    text = text.replace("ml.c5.xlarge", TYPE).replace("images-{campaign}", "images").replace("retry:\n", "retry:\n  - {cause: disk_full, times: 0}\n")
    text = re.sub(r"fan_out: .*", f"fan_out: {source}", text)
    return text.rstrip() + "\n    done_if: {manifest: \"s3://drover-test/images/{part:05d}/\"}\n"


def main():
    out = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(TOP, "orchestrator/web/screenshot.png")
    with Stack("picture", quotas={TYPE: 16}, parts=PARTS, rows=40, lease_us=10000000,
               local={"prices": {TYPE: PRICE}, "cold_start_seconds": 1.5}) as s:
        with open(s.dir + "/prices.json", "w") as f:
            f.write('{"%s": "%s"}' % (TYPE, PRICE))
        s.start()
        first = s.submit(spec(s, "laion-first", "{from: api}"))
        s.api("POST", f"/campaigns/{first}/parts?stage=download&last=true",
              "\n".join('{"uri":"s3://drover-test/meta/part-%05d.snappy.parquet","size":9000}' % i for i in range(4)), {"Content-Type": "application/x-ndjson"})
        wait_for(lambda: s.ended(first), 60, "the parts done before")
        s.oracle("faults", {"faults": [{"kind": "job_failure", "operation": "CreateTrainingJob", "name_contains": f"-download-{n}-", "times": 9, "reason": r}
                                       for n, r in REASONS.items()]})
        cid = s.submit(spec(s, "laion-400m", '{from: "s3://drover-test/meta/*.parquet"}'))
        wait_for(lambda: s.api("GET", f"/campaigns/{cid}")["parts"]["done"] >= 46, 120, "half of it")
        script = """
            import { logIn, openBrowser, URL_ } from './kit.mjs';
            const b = await openBrowser();
            const page = await (await b.context({ viewport: { width: 1280, height: 900 } })).newPage();
            await logIn(page);
            await page.goto(`${URL_}/c/${process.env.ID}`);
            await page.waitForSelector('#failures');
            await page.waitForFunction(() => document.querySelector('#live').textContent.includes('live'));
            await page.screenshot({ path: process.env.OUT, fullPage: true });
            await b.browser.close();
            process.exit(0);"""
        env = {**os.environ, "DROVER_URL": f"http://127.0.0.1:{s.ports['droverd0']}", "DROVER_TOKEN": open(s.token_file).read().strip(),
               "PACKAGES": os.path.join(TOP, "build/e2e/"), "ID": cid[2:], "OUT": out}
        subprocess.run(["node", "--input-type=module", "-e", script], check=True, env=env, cwd=os.path.join(TOP, "tests/e2e"))
    print(f"{out}: {os.path.getsize(out)} bytes")


main()
