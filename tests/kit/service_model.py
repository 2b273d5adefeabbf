#!/usr/bin/python3
"""What Debian's botocore has against requests of AWS: fields, types, required ones, lengths, ranges, enums and patterns. Members
that are newer than it are held against the schema of the pinned AWS SDK for JavaScript.
`service_model.py LOG...` judges wire logs of drover-local (setting log_bodies) and prints what it found as JSON.
"""
import collections
import functools
import hashlib
import json
import os
import re
import subprocess
import sys

import botocore.session
import botocore.validate

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATTERNS = {"TrainingPlanArn": r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:\d{12}:training-plan/.+"}  # of newer members: the SDK has none
SERVICES = {"servicequotas": "service-quotas", "monitoring": "cloudwatch"}  # the wire log's name: botocore's
# Codes by which a service says that the request is wrong in itself. Tests ask for such answers.
WRONG = ("ValidationException", "ValidationError", "BadRequest", "SerializationException", "InvalidParameterException", "IncompatibleParameterError")


@functools.lru_cache(None)
def input_shape(service, operation):
    """The shape of an operation's request; None: there is no such operation, or it takes no member."""
    model = botocore.session.get_session().get_service_model(SERVICES.get(service, service))
    return model.operation_model(operation).input_shape if operation in model.operation_names else None


@functools.lru_cache(None)
def sdk_shapes():
    """What the pinned AWS SDK for JavaScript knows of requests (the form: tests/aws_sdk/shapes.mjs); asked once for a tree and its packages."""
    program, packages = os.path.join(TOP, "tests/aws_sdk/shapes.mjs"), os.path.join(TOP, "build/aws_sdk/")
    with open(os.path.join(TOP, "orchestrator/aws/operation.def"), encoding="utf-8") as f, open(program, "rb") as g:
        operations = re.findall(r"^X\((\w+),", f.read(), re.M)
        name = hashlib.sha256(g.read() + repr(operations).encode()).hexdigest()[:16]
    cache = f"{packages}node_modules/.shapes-{name}.json"
    if not os.path.exists(cache):
        text = subprocess.run(["node", program, packages, *operations], check=True, capture_output=True, text=True).stdout
        with open(f"{cache}.{os.getpid()}", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(f.name, cache)
    with open(cache, encoding="utf-8") as f:
        return json.load(f)


def has_newer(shape, value):
    """It has a member that botocore does not know."""
    if shape.type_name == "structure" and isinstance(value, dict):
        return any(k not in shape.members or has_newer(shape.members[k], v) for k, v in value.items())
    return shape.type_name == "list" and isinstance(value, list) and any(has_newer(shape.member, v) for v in value)


class Sdk:
    """The SDK's schema of one service, against the members that botocore does not know."""

    def __init__(self, service):
        self.shapes, self.operations = sdk_shapes()[service]["shapes"], sdk_shapes()[service]["operations"]

    def without_newer(self, shape, kind, value, path, wrong):
        """A copy for botocore without members that only the SDK knows; what is wrong with those goes to `wrong`."""
        if shape.type_name == "structure" and isinstance(value, dict) and isinstance(kind, dict):
            members, kept = self.shapes[kind["structure"]]["members"], {}
            for k, v in value.items():
                if k in shape.members:
                    kept[k] = self.without_newer(shape.members[k], members.get(k), v, f"{path}.{k}", wrong)
                elif k in members:
                    wrong += self.faults(members[k], v, f"{path}.{k}")
                else:
                    kept[k] = v
            return kept
        if shape.type_name == "list" and isinstance(value, list) and isinstance(kind, dict):
            return [self.without_newer(shape.member, kind["list"], v, path + "[]", wrong) for v in value]
        return value

    def faults(self, kind, value, path):
        """What the schema has against a value of this type."""
        if isinstance(kind, str):
            pattern = PATTERNS.get(path.rsplit(".", 1)[-1])
            if pattern and not re.fullmatch(pattern, str(value)):
                return [f"{path}: {value} is not {pattern}"]
            fits = {"string": str, "blob": str, "boolean": bool, "number": (int, float), "timestamp": (int, float)}[kind]
            return [] if isinstance(value, fits) and isinstance(value, bool) == (kind == "boolean") else [f"{path}: {value} is no {kind}"]
        if "enum" in kind:
            return [] if value in kind["enum"] else [f"{path}: {value} is none of the enum"]
        if "structure" in kind:
            shape = self.shapes[kind["structure"]]
            if not isinstance(value, dict):
                return [f"{path}: {value} is no structure"]
            lacking = [f"{path}.{k} is missing" for k in shape["required"] if k not in value]
            return lacking + [w for k, v in value.items() for w in (self.faults(shape["members"][k], v, f"{path}.{k}") if k in shape["members"] else [f"{path}.{k} is no member"])]
        if not isinstance(value, list if "list" in kind else dict):
            return [f"{path}: {value} is no {'list' if 'list' in kind else 'map'}"]
        return [w for v in (value if "list" in kind else value.values()) for w in self.faults(kind.get("list", kind.get("map")), v, path + "[]")]


def faults_of(service, operation, request):
    """What the service's model has against a request, as a list of texts."""
    shape = input_shape(service, operation)
    wrong = []
    if shape is None:
        return [f"{service} has no {operation}"]
    r = request
    if has_newer(shape, request):
        sdk = Sdk(service)
        r = sdk.without_newer(shape, {"structure": sdk.operations[operation]} if operation in sdk.operations else None, request, operation, wrong)
    report = botocore.validate.ParamValidator().validate(r, shape)
    return wrong + ([report.generate_report()] if report.has_errors() else patterns(shape, r, operation))


def patterns(shape, value, path):
    """botocore's validator knows members, types and lower bounds; enums, patterns and upper bounds are looked at here."""
    if shape.type_name == "structure":
        return [w for k, v in value.items() for w in patterns(shape.members[k], v, path + "." + k)]
    if shape.type_name == "list":
        return bounds(shape, len(value), path) + [w for v in value for w in patterns(shape.member, v, path)]
    if shape.type_name == "map":
        return [w for k, v in value.items() for w in patterns(shape.key, k, path) + patterns(shape.value, v, path + "." + k)]
    if shape.type_name == "string":
        wrong = bounds(shape, len(value), path)
        if getattr(shape, "enum", None) and value not in shape.enum:
            wrong.append(f"{path}: {value} is none of the enum")
        pattern = shape.metadata.get("pattern")
        if pattern and "\\p{" not in pattern and not re.fullmatch(pattern, value, re.S):
            wrong.append(f"{path}: {value} is not {pattern}")
        return wrong
    return bounds(shape, value, path) if shape.type_name in ("integer", "long") else []


def bounds(shape, n, path):
    low, high = shape.metadata.get("min", n), shape.metadata.get("max", n)
    return [] if low <= n <= high else [f"{path}: {n} is not within {low} and {high}"]


def judge(logs):
    """What drover-local was sent: {"requests", "operations": {name: accepted ones}, "refused": {name: judged wrong by both}, "deviations"}."""
    found = {"requests": 0, "operations": collections.Counter(), "refused": collections.Counter(), "deviations": []}
    for log in logs:
        with open(log, encoding="utf-8") as f:
            for line in f:
                q = json.loads(line)
                body = q.get("body", {"EndpointName": q["name"], "Body": "its own"} if q["operation"] == "InvokeEndpoint" else None)
                if body is None or q["status"] is None:
                    continue
                service = "sagemaker-runtime" if q["operation"] == "InvokeEndpoint" else q["service"]
                found["requests"] += 1
                found["operations"][q["operation"]] += q["status"] < 300
                wrong = faults_of(service, q["operation"], body)
                if wrong and q["error"] in WRONG:
                    found["refused"][q["operation"]] += 1
                elif wrong:
                    found["deviations"].append({"operation": q["operation"], "status": q["status"], "error": q["error"], "body": body, "wrong": wrong})
    return found


if __name__ == "__main__":
    print(json.dumps(judge(sys.argv[1:])))
