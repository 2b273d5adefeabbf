#!/usr/bin/python3
"""What Debian's botocore has against requests of AWS: fields, types, required ones, lengths, ranges, enums and patterns.
`service_model.py LOG...` judges wire logs of drover-local (setting log_bodies) and prints what it found as JSON.
"""
import collections
import functools
import json
import re
import sys

import botocore.session
import botocore.validate

SERVICES = {"servicequotas": "service-quotas", "monitoring": "cloudwatch"}  # the wire log's name: botocore's
# Fields of CreateTrainingJob that are newer than Debian's botocore, and the one member each has.
NEWER = {"InfraCheckConfig": "EnableInfraCheck", "RemoteDebugConfig": "EnableRemoteDebug", "SessionChainingConfig": "EnableSessionTagChaining"}
# Codes by which a service says that the request is wrong in itself. Tests ask for such answers.
WRONG = ("ValidationException", "ValidationError", "BadRequest", "SerializationException", "InvalidParameterException", "IncompatibleParameterError")


@functools.lru_cache(None)
def input_shape(service, operation):
    """The shape of an operation's request; None: there is no such operation, or it takes no member."""
    model = botocore.session.get_session().get_service_model(SERVICES.get(service, service))
    return model.operation_model(operation).input_shape if operation in model.operation_names else None


def without_newer(request, wrong):
    """A copy without the newer fields, whose values are looked at here."""
    r = json.loads(json.dumps(request))
    for field, member in NEWER.items():
        value = r.pop(field, None)
        if value is not None and value != {member: True}:
            wrong.append(f"{field} is {value}")
    output, resources = r.get("OutputDataConfig"), r.get("ResourceConfig")
    if isinstance(output, dict) and output.pop("CompressionType", "GZIP") not in ("GZIP", "NONE"):
        wrong.append("CompressionType is neither GZIP nor NONE")
    plan = resources.pop("TrainingPlanArn", None) if isinstance(resources, dict) else None
    if plan is not None and ":training-plan/" not in plan:
        wrong.append(f"{plan} is no training plan")
    return r


def faults_of(service, operation, request):
    """What the service's model has against a request, as a list of texts."""
    shape = input_shape(service, operation)
    wrong = []
    if shape is None:
        return [f"{service} has no {operation}"]
    r = without_newer(request, wrong) if operation == "CreateTrainingJob" else request
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
