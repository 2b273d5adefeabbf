#!/usr/bin/env python3
"""The REST API over a real PostgreSQL. Aim: every route answers as described, wrong input is refused with
every fault, a key is answered once, pages neither skip nor repeat rows. Method: the API's own server
program; SQL plays the leader; one server for the checks of api_submit, api_lists, api_verbs, api_http, api_endpoints, api_runs.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from api_endpoints import check_endpoints
from api_http import check_auth, check_browser, check_encoding, check_headers, check_hostile, check_house, check_lost, check_plain, check_rate, check_request_id
from api_lists import check_orders, check_parts
from api_runs import check_runs
from api_submit import check_faults, check_key_in_use, check_limits, check_live_name, check_submit
from api_verbs import check_guidance, check_guidance_without_parts, check_holds, check_retry, check_retry_preview, check_skipped, check_undo, check_verbs, check_wishes
from kit.api import Api, main


def run(t, pg):
    check_rate(t, pg)
    a = Api(pg)
    check_submit(t, a)
    check_key_in_use(t, a)
    check_auth(t, a)
    check_browser(t, a)
    check_faults(t, a)
    check_limits(t, a)
    check_parts(t, a)
    check_orders(t, a)
    check_retry(t, a)
    check_undo(t, a)
    check_verbs(t, a)
    check_wishes(t, a)
    check_headers(t, a)
    check_guidance(t, a)
    check_guidance_without_parts(t, a)
    check_holds(t, a)
    check_skipped(t, a)
    check_retry_preview(t, a)
    check_hostile(t, a)
    check_plain(t, a)
    check_live_name(t, a)
    check_request_id(t, a)
    check_encoding(t, a)
    check_lost(t, a)
    check_house(t, a)
    check_endpoints(t, a)
    check_runs(t, a)
    s5 = a.sql("SELECT 1") and a.raw("GET", "/metrics")[1].decode()
    n = int(re.search(r"droverd_http_server_errors_total (\d+)", s5).group(1))
    t.eq(n, 0, "not one answer was a 5xx")
    status, log = a.close()
    t.ok(status == 0, "the server ends cleanly", (status, log[-2000:]))


if __name__ == "__main__":
    main(run)
