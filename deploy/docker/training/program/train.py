"""A program to put in the place of: counts the pairs of an index (drover-worker index) and their captions' words, in passes, with a
checkpoint after each, and writes the table of words as its model. It shows where input, checkpoint and model lie and what a metric looks
like in the log; the rest is yours.
"""
import argparse
import collections
import glob
import json
import os
import signal
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--passes", type=int, default=1)
parser.add_argument("--words", type=int, default=1000)
options = parser.parse_args()
state_file = os.environ["SM_CHECKPOINT_DIR"] + "/state.json"
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(True))


def load():
    try:
        with open(state_file, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return {"passes": 0, "pairs": 0, "words": {}}


def save(state):
    os.makedirs(os.path.dirname(state_file), exist_ok=True)
    with open(state_file + ".new", "w", encoding="utf-8") as f:
        json.dump(state, f)
    os.replace(state_file + ".new", state_file)


def one_pass(files):
    words, pairs = collections.Counter(), 0
    for path in files:
        with open(path, encoding="utf-8") as f:
            for line in f:
                pairs += 1
                words.update(json.loads(line).get("caption", "").lower().split())
    return words, pairs


files = sorted(glob.glob(os.environ["SM_CHANNEL_INDEX"] + "/**/*.jsonl", recursive=True))
if not files:
    sys.exit("the channel 'index' has no .jsonl file: give it the output of an index stage")
state = load()
while state["passes"] < options.passes and not stop:
    began = time.monotonic()
    words, pairs = one_pass(files)
    state = {"passes": state["passes"] + 1, "pairs": pairs, "words": dict(words.most_common(options.words))}
    save(state)
    print(f"step={state['passes']} pairs={pairs} words={len(words)} pairs_per_second={pairs / max(time.monotonic() - began, 1e-6):.1f}", flush=True)
os.makedirs(os.environ["SM_MODEL_DIR"], exist_ok=True)
with open(os.environ["SM_MODEL_DIR"] + "/words.json", "w", encoding="utf-8") as f:
    json.dump(state, f)
sys.exit(1 if state["passes"] < options.passes else 0)
