#!/usr/bin/env python3
"""drover-local against the service models of Debian's botocore: of each operation with a JSON body a request with every
member, then the same with one constraint broken at one member: type, length, range, word, pattern, a required member missing, an
unknown one. The answer must name that member. Constraints that the newer models of drover-local's tables have lifted are in LIFTED.
"""
import copy
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit.local import SESSION, call, run
from tools.service_table import SERVICES, played

TARGETS = dict(re.findall(r'\{"(\w+\.)", "(\w+)"\}', open(os.path.join(os.path.dirname(__file__), "../../../worker/local/http/dispatch.c")).read()))
TARGETS = {service: prefix for prefix, service in TARGETS.items()}
# Texts of which one fits each pattern, and of which one fits it not.
TEXTS = ["a", "aa", "a-1", "12", "123456789012", "a/b", "/a/b", "a" * 32, "s3://bkt/a", "arn:aws:iam::123456789012:role/x", "fs-0123456789abcdef0",
         "arn:aws:sagemaker:us-east-1:123456789012:training-job/a", "arn:aws:sagemaker:us-east-1:123456789012:training-plan/a",
         "arn:aws:lambda:us-east-1:123456789012:function:a", "arn:aws:sns:us-east-1:123456789012:a", "arn:aws:kms:us-east-1:123456789012:key/a",
         "arn:aws:fsx:us-east-1:123456789012:file-system/a", "subnet-01234567", "sg-01234567", "vpc-01234567", "L-0123ABCD", "dra-0123456789abcdef0",
         "task-0123456789abcdef0", "backup-0123456789abcdef0", "fsvol-0123456789abcdef0", "1:01:00", "01:00", "10.0.0.0/24", "10.0.0.1", "a.b",
         "arn:aws:secretsmanager:us-east-1:123456789012:secret:a", "123.4", "1a", "a_b", "a:b", "9", "#", "ä", "a b", "a\nb", "", "-", "\u2028"]
# Of shapes that drover-local's own rules, beside the model, narrow.
SAMPLES = {"FileSystemId": "fs-0123456789abcdef0", "FileSystemTypeVersion": "2.15", "ArchivePath": "s3://bkt/a", "Namespace": "/a",
           "PaginationToken": "after-1", "DirectoryPath": "/a", "ProfilingIntervalInMilliseconds": 500}


def samples(shape, right, low, high):
    """Texts within the lengths that fit the pattern, or do not."""
    pattern = shape.metadata.get("pattern")
    here = pattern and pattern.replace("\\p{Alnum}", "a-zA-Z0-9").replace("\\p{L}\\p{Z}\\p{N}", "\\w ")
    for text in TEXTS + [t * n for t in "a1" for n in range(2, 70)]:
        if low <= len(text) <= high and (here is None or bool(re.fullmatch(here, text))) == right:
            yield text


def full(shape, depth=0):
    """A value with every member. None: the shape holds itself."""
    kind = shape.type_name
    if shape.name in SAMPLES:
        return SAMPLES[shape.name]
    low, high = (shape.metadata.get(k, d) for k, d in (("min", 0), ("max", 10 ** 9)))
    if kind == "structure":
        values = {k: full(v, depth + 1) for k, v in shape.members.items()} if depth < 9 else {}
        values = {k: v for k, v in values.items() if v is not None}
        return values if set(values) >= set(shape.required_members) else None
    if kind == "list":
        one = full(shape.member, depth + 1) if depth < 9 else None
        return None if one is None else [copy.deepcopy(one) for _ in range(max(low, 1))]
    if kind == "map":
        key = full(shape.key)
        return {key: full(shape.value, depth + 1)}
    if kind == "string":
        return shape.enum[0] if shape.enum else next(samples(shape, True, low, high), None)
    return {"boolean": True, "blob": "YQ=="}.get(kind, max(low, 1))


def broken(shape, path):
    """Values that the shape does not have, each with the path that the answer names."""
    kind = shape.type_name
    low, high = (shape.metadata.get(k) for k in ("min", "max"))
    yield ([] if kind in ("structure", "map", "string", "blob", "boolean") else "x"), path
    if kind in ("integer", "long", "float", "double"):
        yield from ((v, path) for v in ([] if low is None else [low - 1]) + ([] if high is None else [high + 1]) if abs(v) < 2 ** 53)
    if kind == "string" and shape.enum:
        yield from ((v, path) for v in ("", "no-such-word", shape.enum[0][:-1]) if v not in shape.enum)
    elif kind == "string":
        yield from (("a" * v, path) for v in ([low - 1] if low else []) + ([high + 1] if high is not None and high < 10 ** 6 else []))
        wrong = next(samples(shape, False, low or 0, high or 10 ** 6), None) if "pattern" in shape.metadata else None
        yield from [] if wrong is None else [(wrong, path)]
    if kind == "list":
        one = full(shape.member)
        yield from (([one] * v, path) for v in ([low - 1] if low else []) + ([high + 1] if high is not None and high < 10 ** 4 else []))
    if kind == "map" and high is not None and shape.key.type_name == "string" and not shape.key.enum:
        yield {f"k{i}": full(shape.value) for i in range(high + 1)}, path


def small(name):
    return name[0].lower() + name[1:]


def mutations(shape, value, path=""):
    """(what was done, the whole value with it, the path that the answer names) for each member below."""
    inner = (path + ".") if path else ""
    if shape.type_name == "structure":
        yield "an unknown member", {**value, "NoSuchMember": 1}, inner + "NoSuchMember"
        for k in shape.required_members:
            yield f"no {k}", {o: v for o, v in value.items() if o != k}, inner + small(k)
        for k, v in value.items():
            member = shape.members[k]
            yield from ((f"{k} = {str(b)[:60]!r}", {**value, k: b}, p) for b, p in broken(member, inner + small(k)))
            yield from ((what, {**value, k: b}, p) for what, b, p in mutations(member, v, inner + small(k)))
    elif shape.type_name == "list":
        at = f"{path}.1.member"
        yield from ((f"item {str(b)[:60]!r}", [b] + value[1:], p) for b, p in broken(shape.member, at))
        yield from ((what, [b] + value[1:], p) for what, b, p in mutations(shape.member, value[0], at))
    elif shape.type_name == "map":
        (key, one), = value.items()
        yield from ((f"value {str(b)[:60]!r}", {key: b}, p) for b, p in broken(shape.value, f"{path}.{key}.member"))
        yield from ((what, {key: b}, p) for what, b, p in mutations(shape.value, one, f"{path}.{key}.member"))
        for b, _ in broken(shape.key, ""):
            if isinstance(b, str):
                yield f"key {b[:60]!r}", {b: one}, f"{path}.{b[:60]}.key"


# Constraints of Debian's model that the newer one has lifted: no longer required, or a wider bound.
LIFTED = {(operation, path) for operations, path in [
    ("CreateEndpoint UpdateEndpoint", "deploymentConfig.blueGreenUpdatePolicy"),
    ("CreateEndpoint UpdateEndpoint", "deploymentConfig.blueGreenUpdatePolicy.maximumExecutionTimeoutInSeconds"),
    ("CreateEndpointConfig", "dataCaptureConfig.captureOptions"),
    ("CreateEndpointConfig", "asyncInferenceConfig.outputConfig.s3OutputPath"),
    ("CreateEndpointConfig", "shadowProductionVariants.1.member.modelName"),
    ("CreateModel", "executionRoleArn"), ("CreateModel", "primaryContainer.environment"), ("CreateModel", "containers.1.member.environment"),
    ("CreateTrainingJob", "algorithmSpecification.containerEntrypoint"), ("CreateTrainingJob", "environment"),
    ("UpdateTrainingJob", "resourceConfig.keepAlivePeriodInSeconds"),
    ("CreateFileSystem", "storageCapacity"), ("CreateFileSystem", "ontapConfiguration.throughputCapacity"),
    ("CreateFileSystem", "windowsConfiguration.selfManagedActiveDirectoryConfiguration.userName"),
    ("CreateFileSystem", "windowsConfiguration.selfManagedActiveDirectoryConfiguration.password"),
    ("CreateFileSystem UpdateFileSystem", "ontapConfiguration.diskIopsConfiguration.iops"),
    ("CreateFileSystem UpdateFileSystem", "openZFSConfiguration.diskIopsConfiguration.iops"),
    ("CreateFileSystem", "openZFSConfiguration.rootVolumeConfiguration.recordSizeKiB"),
    ("DescribeLogStreams FilterLogEvents GetLogEvents", "logGroupName")] for operation in operations.split()}
COUNTS = {"requests": 0}


def without_contradictions(operation, body):
    """A request that the rules between members allow, too."""
    body = copy.deepcopy(body)
    if operation == "CreateTrainingJob":
        body["ResourceConfig"].pop("InstanceGroups")
        body["InputDataConfig"][0]["DataSource"].pop("FileSystemDataSource")
    return body


def judge(l, service, operation, shape):
    """What drover-local and the model do not agree on, as texts."""
    target, wrong, body = TARGETS[service], [], full(shape)

    def ask(request):
        COUNTS["requests"] += 1
        status, answer = call(l, operation, request, service, target)
        text = answer.get("Message") or answer.get("message") or ""
        return status, text if "validation error" in text else ""

    def add(path, what, text):
        if (operation, path) not in LIFTED:
            wrong.append(f"{operation} {path}: {what}: {text[:300] or 'taken'}")
    status, text = ask(without_contradictions(operation, body))
    if text:
        add("", "all members", text)
    for what, request, path in mutations(shape, body):
        status, text = ask(request)
        if status != 400 or f" at '{path}' " not in text:
            add(path, what, text)
    return wrong


def test_model__each_constraint_is_held(l):
    wrong = []
    for service, theirs in SERVICES.items():
        model = SESSION.get_service_model(theirs)
        for operation in sorted(set(played(service)) & set(model.operation_names)):  # DeleteTrainingJob is newer
            wrong += judge(l, service, operation, model.operation_model(operation).input_shape)
    print("# %d requests, %d differences" % (COUNTS["requests"], len(wrong)), *wrong, sep="\n# ", flush=True)
    assert COUNTS["requests"] > 500 and not wrong, "%d differences" % len(wrong)


run([(test_model__each_constraint_is_held, {})])
