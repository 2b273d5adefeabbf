#!/usr/bin/env python3
"""Writes the policies of deploy/iam into prerequisites.yaml, where a line `# from deploy/iam/NAME` stands. --check: only says whether they
are the same."""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TEMPLATE = HERE + "/prerequisites.yaml"
PLACES = (("PARTITION", "${AWS::Partition}"), ("REGION", "${AWS::Region}"), ("ACCOUNT", "${AWS::AccountId}"), ("BUCKET", "${Bucket}"))


def as_yaml(value):
    """A string with a place in it is a !Sub."""
    if isinstance(value, list):
        return "[" + ", ".join(map(as_yaml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {as_yaml(v)}" for k, v in value.items()) + "}"
    for name, place in PLACES:
        value = value.replace(name, place)
    return ("!Sub " if "${" in value else "") + json.dumps(value)


def statements(name, indent):
    with open(f"{HERE}/../iam/{name}", encoding="utf-8") as f:
        policy = json.load(f)
    lines = [f'{indent}Version: "{policy["Version"]}"', f"{indent}Statement:"]
    for s in policy["Statement"]:
        for i, (key, value) in enumerate(s.items()):
            lines.append(f"{indent}  {'- ' if i == 0 else '  '}{key}: {as_yaml(value)}")
    return "\n".join(lines) + "\n"


def filled(text):
    pattern = re.compile(r"^( *)# from deploy/iam/([\w-]+\.json)\n(?:\1(?!# end).*\n)*?\1# end\n", re.M)
    return pattern.sub(lambda m: f"{m[1]}# from deploy/iam/{m[2]}\n{statements(m[2], m[1])}{m[1]}# end\n", text)


def main():
    with open(TEMPLATE, encoding="utf-8") as f:
        text = f.read()
    if sys.argv[1:] == ["--check"]:
        return 0 if filled(text) == text else "prerequisites.yaml differs from deploy/iam; run deploy/cloudformation/policies.py"
    with open(TEMPLATE, "w", encoding="utf-8") as f:
        f.write(filled(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
