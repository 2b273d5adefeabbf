#!/usr/bin/env python3
"""Writes worker/local/model/*.def: the input shapes of the operations that drover-local plays, as the installed botocore has
them. Run it with the newest botocore at hand; tests/integration/local/local_model.py holds the result against Debian's.
"""
import pathlib
import re

import botocore.session

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVICES = {"sagemaker": "sagemaker", "fsx": "fsx", "servicequotas": "service-quotas", "logs": "logs", "ecr": "ecr", "secretsmanager": "secretsmanager",
            "ssm": "ssm", "pricing": "pricing", "sqs": "sqs", "monitoring": "cloudwatch"}  # ours: botocore's
WIDE, INT32, INT64 = 150, 2 ** 31 - 1, 2 ** 63 - 1
KINDS = {"integer": ("INTEGER", -INT32 - 1, INT32), "long": ("INTEGER", -INT64, INT64), "float": ("NUMBER", -INT64, INT64), "double": ("NUMBER", -INT64, INT64),
         "timestamp": ("NUMBER", -INT64, INT64)}


def played(service):
    """The operations of a service in drover-local's table."""
    text = (ROOT / "worker/local/http/dispatch.c").read_text()
    return re.findall(r'\{"%s", "(\w+)",' % service, text)


def quoted(text):
    """As C strings one after the other, Java's classes and code points in PCRE's spelling."""
    text = re.sub(r"\\u([0-9A-Fa-f]{4})", r"\\x{\1}", text.replace("\\p{Alnum}", "[:alnum:]"))
    pieces = [text[i:i + 100] for i in range(0, len(text), 100)]
    return ['"' + p.replace("\\", "\\\\").replace('"', '\\"') + '"' for p in pieces]


def wrapped(head, items, end):
    """One row of the table in lines of at most WIDE characters."""
    lines, line = [], head
    for item in items:
        if len(line) + len(item) + 1 > WIDE and line.strip():
            lines.append(line)
            line = " "
        line += (" " if line else "") + item
    return "\n".join(lines + [line + end])


def bounds(shape, low, high):
    """The constraints min and max; a number beyond 64 bits is none."""
    return [str(v) for v in (max(int(shape.metadata.get("min", low)), low), min(int(shape.metadata.get("max", high)), high))]


def row(shape, name):
    """A shape as one row."""
    kind = shape.type_name
    if kind == "structure":
        members = [f'M("{k}", {name(v)}, {int(k in shape.required_members)})' for k, v in shape.members.items()]
        return wrapped(f"STRUCTURE({name(shape)},", members or ["M_NONE"], ")")
    if kind == "list":
        return f"LIST({name(shape)}, {', '.join(bounds(shape, 0, INT32))}, {name(shape.member)})"
    if kind == "map":
        return f"MAP({name(shape)}, {', '.join(bounds(shape, 0, INT32))}, {name(shape.key)}, {name(shape.value)})"
    if kind == "boolean":
        return f"BOOLEAN({name(shape)})"
    if kind in KINDS:
        of, low, high = KINDS[kind]
        return f"{of}({name(shape)}, {', '.join(bounds(shape, low, high))})"
    if getattr(shape, "enum", None):
        words = [f'"{w}, "' for w in shape.enum[:-1]] + [f'"{shape.enum[-1]}"']
        return wrapped(f"WORDS({name(shape)},", words, ")")
    pattern = shape.metadata.get("pattern")
    return wrapped(f"TEXT({name(shape)}, {', '.join(bounds(shape, 0, INT32))},", quoted(pattern) if pattern else ["NULL"], ")")


def table(ours, theirs):
    """All rows of a service."""
    model = botocore.session.get_session().get_service_model(theirs)
    shapes, operations = {}, []

    def walk(shape):
        if shape.name in shapes:
            return
        shapes[shape.name] = shape
        for of in {"structure": lambda: shape.members.values(), "list": lambda: [shape.member], "map": lambda: [shape.key, shape.value]}.get(
                shape.type_name, list)():
            walk(of)

    for operation in played(ours):
        shape = model.operation_model(operation).input_shape
        walk(shape)
        operations.append(f'OPERATION("{ours}", "{operation}", {ours}_{shape.name})')
    rows = [row(shapes[k], lambda s: f"{ours}_{s.name}") for k in sorted(shapes)]
    return "\n".join([f"/* Made by tests/tools/service_table.py out of botocore {botocore.__version__}: do not edit. */"] + rows + operations) + "\n"


if __name__ == "__main__":
    for mine, botos in SERVICES.items():
        (ROOT / f"worker/local/model/{mine}.def").write_text(table(mine, botos))
