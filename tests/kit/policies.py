"""The policies in deploy/iam as an operator fills them in, for drover-local to enforce."""
import json
import re

from kit import TOP

NAMED = r"(training-job|model|endpoint-config|endpoint|Endpoints|log-stream:?)([/:]?)drover-"  # what droverd names, by its setting job_prefix


def shipped(name, account, buckets, prefix="drover", roles=()):
    """deploy/iam/NAME.json: with each statement of BUCKET for all the buckets, and droverd may pass the roles."""
    with open(f"{TOP}/deploy/iam/{name}.json", encoding="utf-8") as f:
        text = re.sub(NAMED, rf"\1\2{prefix}-", f.read())
    policy = json.loads(text.replace("PARTITION", "aws").replace("REGION", "us-east-1").replace("ACCOUNT", account))
    for s in policy["Statement"]:
        if s["Action"] == "iam:PassRole":
            s["Resource"] = list(roles)
        resources = s["Resource"] if isinstance(s["Resource"], list) else [s["Resource"]]
        s["Resource"] = [r.replace("BUCKET", b) for r in resources for b in (buckets if "BUCKET" in r else [""])]
    return policy
