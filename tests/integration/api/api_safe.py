#!/usr/bin/env python3
"""The API on a network where not everybody is a friend. Aim: two servers never share an address or a private database,
empty selections and wrong settings are refused, secrets stay unseen, one client cannot use up what all share. Method:
droverd as a process for its start, the API's own server program for the rest. ONLY=word runs the checks so named.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from api_people import audit, sessions, slow, tokens, wrong
from api_room import absurd, bodies, crowd, dear, forecasts, keys, large, reserve, spooled, streams, streams_of_droverd, unread
from api_secrets import canary, secrets
from api_start import start_alone, start_settings, start_waits
from kit import wanted
from kit.api import main


def run(t, pg):
    for check in (start_alone, start_settings, start_waits, streams, streams_of_droverd, bodies, spooled, reserve, secrets, canary, forecasts, large, crowd, unread, absurd, sessions, slow, tokens, wrong, audit, keys, dear):
        if wanted(check.__name__):
            check(t, pg)


if __name__ == "__main__":
    main(run)
