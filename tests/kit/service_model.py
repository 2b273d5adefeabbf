#!/usr/bin/python3
"""What the services' models have against requests of AWS: fields, types, required ones, lengths, ranges, enums and patterns. The
models are Debian's botocore's; members that are newer than it are held against the pinned AWS SDK for JavaScript (service_shapes.py).
`service_model.py LOG...` holds logs of requests of drover-local (setting log_bodies) against them, `service_model.py -- COMMAND...`
what the C programs of a command send (kit/local.h); it prints one TAP line.
"""
import collections
import functools
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import xml.etree.ElementTree

if __name__ == "__main__":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from kit import service_shapes

PATTERNS = {"TrainingPlanArn": r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:\d{12}:training-plan/.+"}  # of newer members: the SDK has none
# Codes by which a service says that the request is wrong in itself. Tests ask for such answers.
WRONG = ("ValidationException", "ValidationError", "BadRequest", "SerializationException", "InvalidParameterException", "IncompatibleParameterError",
         "InvalidArgument", "InvalidRequest", "MalformedXML", "MethodNotAllowed", "NotImplemented", "InvalidBucketName", "MissingParameter", "KeyTooLongError",
         "XAmzContentSHA256Mismatch")  # the last: its bytes were damaged on the way
# Headers of HTTP and of the signature, which are in no model.
CARRIER = {"host", "content-length", "content-type", "accept", "accept-encoding", "connection", "expect", "user-agent", "transfer-encoding", "amz-sdk-invocation-id", "amz-sdk-request",
           "x-amz-date", "x-amz-content-sha256", "x-amz-decoded-content-length", "x-amz-trailer", "content-encoding", "x-amz-user-agent"}
SIGNED_URL = re.compile("X-Amz-(Algorithm|Credential|Date|Expires|SignedHeaders|Signature|Security-Token)|x-id")
CHECKSUM = re.compile("x-amz-checksum-(crc32|crc32c|crc64nvme|sha1|sha256)|x-amz-sdk-checksum-algorithm")
KINDS = {"string": str, "blob": str, "boolean": bool, "integer": int, "long": int, "float": (int, float), "double": (int, float), "number": (int, float)}


def kind_fits(kind, value):
    if kind == "timestamp":
        return isinstance(value, (int, float)) and not isinstance(value, bool) or isinstance(value, str) and bool(re.match(r"\d{4}-\d\d-\d\dT|\w{3}, \d\d ", value))
    return isinstance(value, KINDS[kind]) and isinstance(value, bool) == (kind == "boolean")


@functools.lru_cache(None)
def pattern_of(text):
    return None if "\\p{" in text else re.compile(text, re.S)


class Service:
    """One service's models against values of its shapes."""

    def __init__(self, name):
        self.name, self.model = name, service_shapes.models()[name]
        self.shapes = self.model["shapes"]

    @functools.cached_property
    def newer(self):
        return service_shapes.sdk().get(self.name, {"operations": {}, "shapes": {}})

    def faults(self, name, value, path):
        """What the shape of this name has against a value, as a list of texts."""
        shape = self.shapes[name]
        kind = shape["type"]
        if kind == "structure":
            return self.structure(name, shape, value, path)
        if kind == "list":
            if not isinstance(value, list):
                return [f"{path}: {value} is no list"]
            return bounds(shape, len(value), path) + [w for v in value for w in self.faults(shape["member"]["shape"], v, path + "[]")]
        if kind == "map":
            if not isinstance(value, dict):
                return [f"{path}: {value} is no map"]
            return bounds(shape, len(value), path) + [w for k, v in value.items() for w in self.faults(shape["key"]["shape"], k, path) + self.faults(shape["value"]["shape"], v, f"{path}.{k}")]
        if not kind_fits(kind, value):
            return [f"{path}: {value} is no {kind}"]
        if kind == "string":
            wrong = bounds(shape, len(value), path)
            if "enum" in shape and value not in shape["enum"]:
                wrong.append(f"{path}: {value} is none of the enum")
            pattern = pattern_of(shape["pattern"]) if "pattern" in shape else None
            return wrong + ([f"{path}: {value} is not {shape['pattern']}"] if pattern and not pattern.fullmatch(value) else [])
        return bounds(shape, value, path) if kind in ("integer", "long") else []

    def structure(self, name, shape, value, path):
        if not isinstance(value, dict):
            return [f"{path}: {value} is no structure"]
        wrong = [f"{path}.{k} is missing" for k in shape.get("required", ()) if k not in value]
        for k, v in value.items():
            if k in shape["members"]:
                wrong += self.faults(shape["members"][k]["shape"], v, f"{path}.{k}")
            else:
                known = self.newer["shapes"].get(name, {"members": {}})["members"]
                wrong += self.newer_faults(known[k], v, f"{path}.{k}") if k in known else [f"{path}.{k} is no member"]
        return wrong

    def newer_faults(self, kind, value, path):
        """The same by the SDK's schema."""
        if isinstance(kind, str):
            pattern = PATTERNS.get(path.rsplit(".", 1)[-1])
            if pattern and not re.fullmatch(pattern, str(value)):
                return [f"{path}: {value} is not {pattern}"]
            return [] if kind_fits(kind, value) else [f"{path}: {value} is no {kind}"]
        if "enum" in kind:
            return [] if value in kind["enum"] else [f"{path}: {value} is none of the enum"]
        if "structure" in kind:
            shape = self.newer["shapes"][kind["structure"]]
            if not isinstance(value, dict):
                return [f"{path}: {value} is no structure"]
            return [f"{path}.{k} is missing" for k in shape["required"] if k not in value] + [
                w for k, v in value.items() for w in (self.newer_faults(shape["members"][k], v, f"{path}.{k}") if k in shape["members"] else [f"{path}.{k} is no member"])]
        if not isinstance(value, list if "list" in kind else dict):
            return [f"{path}: {value} is no {'list' if 'list' in kind else 'map'}"]
        return [w for v in (value if "list" in kind else value.values()) for w in self.newer_faults(kind.get("list", kind.get("map")), v, path + "[]")]

    def typed(self, name, text):
        """A text of a header, of the query or of XML as its shape's type; the text where it is none of that type."""
        kind = self.shapes[name]["type"]
        if kind == "boolean" and text in ("true", "false"):
            return text == "true"
        if kind in ("integer", "long") and re.fullmatch(r"-?\d+", text):
            return int(text)
        if kind in ("float", "double") and re.fullmatch(r"-?[\d.]+", text):
            return float(text)
        return text

    def from_form(self, ref, tree):
        """A value of the Query protocol's dotted names, split into a tree, for a member's shape."""
        shape = self.shapes[ref["shape"]]
        if isinstance(tree, str) or shape["type"] not in ("structure", "list"):
            return self.typed(ref["shape"], tree) if isinstance(tree, str) else tree
        if shape["type"] == "list":
            if self.model["protocol"] != "ec2" and not shape.get("flattened"):
                tree = tree.get(shape["member"].get("locationName", "member"), tree)
            return [self.from_form(shape["member"], tree[n]) for n in sorted(tree, key=int)] if all(n.isdigit() for n in tree) else tree
        names = {}
        for k, member in shape["members"].items():
            name = member.get("locationName", k)
            names[member.get("queryName") or (name[0].upper() + name[1:] if self.model["protocol"] == "ec2" else name)] = (k, member)
        return {names[n][0] if n in names else n: self.from_form(names[n][1], v) if n in names else v for n, v in tree.items()}

    def from_xml(self, name, element):
        shape = self.shapes[name]
        if shape["type"] != "structure":
            return self.typed(name, element.text or "")
        names, value = {m.get("locationName", k): (k, m["shape"]) for k, m in shape["members"].items()}, {}
        for child in element:
            tag = child.tag.rsplit("}", 1)[-1]
            key, kind = names.get(tag, (tag, None))
            if kind and self.shapes[kind]["type"] == "list":
                value.setdefault(key, []).append(self.from_xml(self.shapes[kind]["member"]["shape"], child))
            else:
                value[key] = self.from_xml(kind, child) if kind else child.text
        return value


@functools.lru_cache(None)
def service_of(name):
    return Service(name)


def faults_of(service, operation, request):
    """What the service's models have against a request, as a list of texts."""
    s = service_of("sagemaker-runtime" if operation == "InvokeEndpoint" else service)
    of = s.model["operations"].get(operation)
    if of is None:
        return [f"{service} has no {operation}"]
    return s.faults(of["input"], request, operation) if of["input"] else [f"{operation} takes no {k}" for k in request]


def bounds(shape, n, path):
    low, high = shape.get("min", n), shape.get("max", n)
    return [] if low <= n <= high else [f"{path}: {n} is not within {low} and {high}"]


def form_faults(s, operation, text):
    """Of the Query protocol: the form is the operation, the service's version and the members."""
    pairs = urllib.parse.parse_qsl(text, keep_blank_values=True)
    wrong = [f"{n} comes twice" for n, times in collections.Counter(n for n, _ in pairs).items() if times > 1]
    tree = {}
    for name, value in pairs:
        at, *rest = name.split(".")
        node = tree
        for deeper in rest:
            node = node.setdefault(at, {})
            at = deeper
        node[at] = value
    version = tree.pop("Version", None)
    if tree.pop("Action", None) != operation or version != s.model["version"]:
        wrong.append(f"version {version}, not {s.model['version']}")
    shape = s.model["operations"][operation]["input"]
    return wrong + (s.faults(shape, s.from_form({"shape": shape}, tree), operation) if shape else [f"{operation} takes no {k}" for k in tree])


def rest_faults(s, operation, q):
    """Of an operation that has its members in path, query, headers and body."""
    of = s.model["operations"][operation]
    shape = s.shapes[of["input"]] if of["input"] else {"members": {}}
    newer = s.newer["shapes"].get(s.newer["operations"].get(operation), {"members": {}, "header": {}, "query": {}}) if of["input"] else {"header": {}, "query": {}}
    path, _, query = q["uri"].partition("?")
    pattern, _, fixed = of["http"]["requestUri"].partition("?")
    wrong = [] if q["method"] == of["http"]["method"] else [f"{q['method']}, not {of['http']['method']}"]
    value, place = {}, {"header": {}, "querystring": {}}
    for k, m in shape["members"].items():
        if m.get("location") in place:
            place[m["location"]][m["locationName"].lower()] = (k, m["shape"])
    found = re.fullmatch(re.sub(r"\\{(\w+)(\\\+)?\\}", lambda m: f"(?P<{m[1]}>{'.+' if m[2] else '[^/]+'})", re.escape(pattern)) + "/?", path)
    if not found:
        return wrong + [f"{path} is not {pattern}"]
    value.update({k: urllib.parse.unquote(v) for k, v in found.groupdict().items()})
    asked = [p.partition("=")[::2] for p in query.split("&") if p]
    wrong += [f"{n} comes twice" for n, times in collections.Counter(n for n, _ in asked).items() if times > 1]
    wrong += [f"?{p} is not there" for p in fixed.split("&") if p and p.partition("=")[::2] not in asked and p.partition("=")[0] != "x-id"]
    for where, newer_names, pairs in (("querystring", newer["query"], [(n, urllib.parse.unquote(v)) for n, v in asked if (n, v) not in [f.partition("=")[::2] for f in fixed.split("&")]]),
                                      ("header", newer["header"], q["headers"].items())):
        for n, v in pairs:
            key = n.lower()
            if key in place[where]:
                member, kind = place[where][key]
                value[member] = s.typed(kind, v)
            elif key in newer_names:
                value[newer_names[key]] = v
            elif not (key in CARRIER or key.startswith("x-amz-meta-") or (of["checksum"] and CHECKSUM.fullmatch(key)) if where == "header" else SIGNED_URL.fullmatch(n)):
                wrong.append(f"{n} is no {where} of {operation}")
    payload = shape.get("payload")
    if payload and q["text"] and s.shapes[shape["members"][payload]["shape"]]["type"] == "structure":
        try:
            value[payload] = s.from_xml(shape["members"][payload]["shape"], xml.etree.ElementTree.fromstring(q["text"]))
        except xml.etree.ElementTree.ParseError:
            return wrong + ["the body is no XML"]
    elif payload and s.shapes[shape["members"][payload]["shape"]]["type"] == "blob":
        value[payload] = "its own"
    return wrong + (s.faults(of["input"], value, operation) if of["input"] else [])


def line_faults(q):
    """What is wrong with the request of a line of the log."""
    if "body" in q:
        return faults_of(q["service"], q["operation"], q["body"]) if q["body"] is not None else ["the body is not read"]
    s = service_of("sagemaker-runtime" if q["operation"] == "InvokeEndpoint" else q["service"])
    if q["operation"] not in s.model["operations"]:
        return [f"{q['service']} has no {q['operation']}"]
    if s.model["protocol"] in ("query", "ec2"):
        return form_faults(s, q["operation"], q["text"])
    return rest_faults(s, q["operation"], q) if s.model["protocol"].startswith("rest") else ["the body is no JSON"]


def judge(logs):
    """What drover-local was sent: {"requests", "operations": {name: accepted ones}, "refused": {name: judged wrong by both}, "deviations"}."""
    found = {"requests": 0, "operations": collections.Counter(), "refused": collections.Counter(), "deviations": []}
    known = {}  # faults of a line that came before
    for log in logs:
        with open(log, encoding="utf-8") as f:
            for line in f:
                if line not in known:
                    q = json.loads(line)
                    known[line] = (q["operation"], q["status"], q["error"], line_faults(q))
                    if len(known) > 20000:
                        known = {line: known[line]}
                operation, status, error, wrong = known[line]
                found["requests"] += 1
                found["operations"][operation] += status < 300
                if wrong and error in WRONG:
                    found["refused"][operation] += 1
                elif wrong:
                    found["deviations"].append({"operation": operation, "status": status, "error": error, "line": line[:2000], "wrong": wrong})
    return found


def hold(*logs, refused=()):
    """Judges the logs of drover-locals that have ended: says in a line what it found, and raises when that is not right. refused: the
    operations that a test sends wrong on purpose; of every other a wrong request is a deviation, also where drover-local refused it.
    """
    begun = time.process_time()
    found = judge(logs)
    wrong = {k: n for k, n in found["refused"].items() if k not in refused}
    said = (f"{found['requests']} requests of {len(found['operations'])} operations, {sum(found['refused'].values())} refused, "
            f"{len(found['deviations'])} deviations from the services' models, judged in {time.process_time() - begun:.2f} s of CPU")
    print("# " + said, flush=True)
    if found["deviations"] or wrong:
        raise AssertionError("not as the services' models have it: " + json.dumps([wrong, *found["deviations"][:5]], indent=1))
    return said


def main(args):
    status, logs = 0, args
    with tempfile.TemporaryDirectory(prefix="requests-", dir=service_shapes.TOP + "/build") as folder:
        if args[:1] == ["--"]:
            status = subprocess.run(args[1:], env={**os.environ, "DROVER_REQUESTS": folder}, check=False).returncode
            logs = glob.glob(folder + "/*.log")
        try:
            assert logs, "there is no log of requests"
            print("ok - " + hold(*logs))
        except (AssertionError, OSError) as e:
            print(*("# " + line for line in str(e).splitlines()), "not ok - the requests are those of the services' models", sep="\n")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
