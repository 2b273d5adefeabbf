"""What the services' models say of the requests that drover-local plays (iam/action.def): botocore's, of Debian's package, and for what
is newer the pinned AWS SDK's for JavaScript. Each is read once for a tree and kept below build/ as a small JSON file, so that a
judge starts in a moment and needs no botocore in its own process.
"""
import functools
import glob
import hashlib
import json
import os
import re
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = "/usr/lib/python3/dist-packages/botocore/data"
NAMES = {"servicequotas": "service-quotas", "monitoring": "cloudwatch"}  # drover-local's name: botocore's
KEPT = ("type", "required", "members", "member", "key", "value", "min", "max", "enum", "pattern", "flattened", "payload", "shape", "location", "locationName", "queryName")


@functools.lru_cache(None)
def played():
    """{service: operations} that drover-local plays, those without an action among them."""
    found = {"sagemaker-runtime": ["InvokeEndpoint"], "sts": ["AssumeRoleWithWebIdentity"]}
    with open(os.path.join(TOP, "worker/local/iam/action.def"), encoding="utf-8") as f:
        for service, operation in re.findall(r'^X\("(\w+)", "(\w+)"', f.read(), re.M):
            found.setdefault(service, []).append(operation)
    return found


def kept(folder, what, inputs, make):
    """The JSON value of make(), which is asked when the inputs are new. Two may make it at once."""
    path = os.path.join(TOP, folder, f".{what}-{hashlib.sha256(repr(inputs).encode()).hexdigest()[:16]}.json")
    if not os.path.exists(path):
        with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as f:
            f.write(make())
        os.rename(f.name, path)
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def without_texts(shape):
    """A shape, or a member, without its documentation."""
    small = {k: v for k, v in shape.items() if k in KEPT}
    if isinstance(small.get("members"), dict):
        small["members"] = {k: without_texts(v) for k, v in small["members"].items()}
    return small


def reachable(shapes, name, into):
    if name not in into:
        into[name] = without_texts(shapes[name])
        refs = [*into[name].get("members", {}).values(), *(into[name][k] for k in ("member", "key", "value") if k in into[name])]
        for ref in refs:
            reachable(shapes, ref["shape"], into)


def newest(service):
    return max(glob.glob(f"{DATA}/{NAMES.get(service, service)}/*/service-2.json"))


def read_models():
    models = {}
    for service, operations in played().items():
        with open(newest(service), encoding="utf-8") as f:
            model = json.load(f)
        mine = models[service] = {"version": model["metadata"]["apiVersion"], "protocol": model["metadata"]["protocol"], "operations": {}, "shapes": {}}
        for name in operations:
            if name in model["operations"]:
                of = model["operations"][name]
                mine["operations"][name] = {"http": of["http"], "input": of.get("input", {}).get("shape"), "checksum": "requestAlgorithmMember" in of.get("httpChecksum", {})}
                if "input" in of:
                    reachable(model["shapes"], of["input"]["shape"], mine["shapes"])
    return json.dumps(models)


@functools.lru_cache(None)
def models():
    """{service: {"version", "protocol", "operations": {name: {"http", "input": shape or None, "checksum": it takes one}}, "shapes": {name: as botocore has it}}}."""
    files = [(newest(s), os.path.getsize(newest(s))) for s in played()]
    with open(__file__, encoding="utf-8") as f:
        return kept("build", "botocore-shapes", (files, played(), f.read()), read_models)


@functools.lru_cache(None)
def sdk():
    """The same of the SDK, in the form that tests/aws_sdk/shapes.mjs says."""
    program, packages = os.path.join(TOP, "tests/aws_sdk/shapes.mjs"), os.path.join(TOP, "build/aws_sdk/")
    operations = sorted({o for names in played().values() for o in names})
    if not os.path.isdir(packages + "node_modules"):
        raise RuntimeError("the AWS SDK for JavaScript is not there: make deps-test")
    with open(program, encoding="utf-8") as f:
        return kept("build/aws_sdk/node_modules", "shapes", (f.read(), operations),
                    lambda: subprocess.run(["node", program, packages, *operations], check=True, capture_output=True, text=True).stdout)
