"""deploy/campaign-file.md from the table of keys, core/spec/campaign_key.def. `python3 tests/documents.py --update` writes it."""
import re

FORMS = {"FilePairs": "map of texts", "FileMoney": "money: 900 USD", "FileTime": "duration: 90s, 4h, 2d", "FileSwitch": "on, off", "FileCount": "number, 1 or more",
         "FilePercent": "percentage: 2%", "FileFactor": "factor: x2", "FileKey": "key of KMS", "FileInstanceType": "instance type", "FileTexts": "text, or a list",
         "FileStorage": "place in S3", "FileRole": "ARN of a role", "FileFrom": "place in S3, or api", "FileVariable": "", "FilePayloads": "list"}
MAPS = {"FileVpc": "VPC", "FileFanOut": "FAN_OUT", "FileMatrix": "MATRIX"}  # whose S(...) is more than a map
KINDS = {"OF_ALL": "all", "OF_JOBS": "jobs", "OF_ENDPOINT": "endpoint", "OF_LUSTRE": "lustre", "OF_BOTH": "jobs, endpoint", "OF_KEPT": "endpoint, lustre", "OF_SIZED": "jobs, lustre"}
HEAD = """# The campaign file

Every key, by the map it stands in. YAML or JSON; an unknown key is a fault, and `drover validate FILE` shows all faults at once. A text may
have variables: `{NAME}` of `vars`, and where parts differ `{part:05d}`, `{file_name}`, `{stem}`, `{uri}`, `{size}`, `{attempt}`, `{campaign}`, `{stage}`. `{{`
is a brace. Editors get the same from droverd: `/schemas/campaign.json`. Whole files are in `deploy/examples/`.

This page is written from the table that drover reads files with; `python3 tests/documents.py --update` writes it.
"""


def arguments(text):
    """The arguments of one row, split at commas outside of texts and brackets; neighbouring texts are one."""
    parts, depth = [""], 0
    for token in re.findall(r'"(?:[^"\\]|\\.)*"|.', text, re.S):
        depth += (token in "([{") - (token in ")]}")
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return [p.strip() for p in parts]


def rows(source):
    """[(map, place, text, [(key, of, default, limit, text, schema)])] of the table."""
    maps = []
    for kind, inner in re.findall(r"^([MK])\((.*?)\)\n(?=[MK]\(|\n|\Z)", source, re.M | re.S):
        a = [x[1:-1] if x.startswith('"') else x for x in arguments(inner)[:6]]
        if kind == "M":
            maps.append((a[0], a[1], a[2], []))
        else:
            maps[-1][3].append((*a[1:6], ", ".join(arguments(inner)[6:])))
    return maps


def form(schema, places, names):
    """What a value looks like, in words."""
    counts = re.match(r"(INT|OFF_OR)\((\d+), (\d+)\)", schema)
    words = re.match(r"WORDS\((.*)\)$", schema)
    if counts:
        return f"{int(counts[2]):,} to {int(counts[3]):,}" + (", or off" if counts[1] == "OFF_OR" else "")
    if words:
        return words[1].replace('"', "")
    schema = schema.replace('"type": "string", "enum"', '"enum"')
    found = []
    for ref, enum, limits, typed in re.findall(r'"(File\w+)"|"enum": \[([^\]]*)\]|"integer", ("minimum": \d+(?:, "maximum": "?\w+"?)?)|"type": "(string|object|array|number)"', schema):
        if ref:
            of = names.get(ref)
            found.append(f"map `{places[of]}`" if of else FORMS[ref])
        elif enum:
            found.append(enum.replace('"', ""))
        elif limits:
            span = re.findall(r": \"?(\w+)", limits)
            found.append(f"{span[0]} or more" if len(span) == 1 else f"{span[0]} to {span[1].replace('VOLUME_GB_MAX', '16,384')}")
        else:
            found.append({"string": "text", "object": "map", "array": "list", "number": "number"}[typed])
    const = re.search(r'\{"const": (\w+)\}', schema)
    found = [const[1]] if const else [f for i, f in enumerate(found) if f and f not in found[:i]]
    if found[:1] in (["list"], ["map"]) and len(found) > 1:
        return f"{found[0]} of " + ", ".join(found[1:]) if '"anyOf": [{"$ref"' not in schema[:20] else ", or ".join(found)
    return ", or ".join(found) or "text"


def page(table, schemas):
    maps = rows(table)
    places = {m[0]: m[1] for m in maps}
    names = {**{n: m for n, m in re.findall(r'^S\((File\w+), \{"type": "object",.*"properties": "(\w+)"\}\)$', schemas, re.M)}, **MAPS}
    out = [HEAD]
    for name, place, text, keys in maps:
        stage = name == "STAGE"
        out.append(f"## {place}\n\n{text}\n\n| key | value |{' stages |' if stage else ''} default | limit | what |\n|---|---|{'---|' if stage else ''}---|---|---|")
        for key, of, initial, limit, what, schema in keys:
            if of != "LATER":
                out.append("| " + " | ".join([f"`{key}`", form(schema, places, names), *([KINDS[of]] if stage else []), initial, limit, what]) + " |")
        later = [(key, what) for key, of, _, _, what, _ in keys if of == "LATER"]
        out += ["", "Not supported: " + "; ".join(f"`{k}`" + (f" ({w})" if w != "NULL" else "") for k, w in later) + ".", ""] if later else [""]
    return "\n".join(out).rstrip("\n") + "\n"
