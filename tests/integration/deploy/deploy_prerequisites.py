#!/usr/bin/python3
"""deploy/cloudformation/prerequisites.yaml. Aim: CloudFormation would take it, and it makes what deploy/iam says. Method: every resource and
property is held against the resource specification of the AWS CDK (npm), every reference against what is there; the policies are evaluated for
an account and compared with deploy/iam as its by-hand.md fills them in, and each check is shown a faulty template.
"""
import copy
import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, Tap
from kit.cloudformation import Stack, load

TEMPLATE = TOP + "/deploy/cloudformation/prerequisites.yaml"
SPECIFICATION = TOP + "/build/openapi/node_modules/@aws-cdk/cfnspec/spec/specification.json"
OF_RESOURCES = {"Type", "Properties", "Condition", "DependsOn", "DeletionPolicy", "UpdateReplacePolicy", "Metadata"}
POLICIES = {"DeletionPolicy": ("Delete", "Retain", "RetainExceptOnCreate", "Snapshot"), "UpdateReplacePolicy": ("Delete", "Retain", "Snapshot")}
FUNCTIONS = {"Ref", "Fn::GetAtt", "Fn::Sub", "Fn::If", "Fn::Equals", "Fn::Not", "Fn::Join"}
PRIMITIVES = {"String": str, "Integer": int, "Long": int, "Double": (int, float), "Boolean": bool, "Timestamp": str, "Json": dict}


def is_function(v):
    return isinstance(v, dict) and len(v) == 1 and next(iter(v)) in FUNCTIONS


def check_value(spec, kind, row, value, at, wrong):
    """A value against a row of the specification."""
    if is_function(value):
        if "Fn::If" in value:
            for x in value["Fn::If"][1:]:
                check_value(spec, kind, row, x, at, wrong)
        return
    container = row.get("Type") if row.get("Type") in ("List", "Map") else None
    if container:
        want = list if container == "List" else dict
        if not isinstance(value, want):
            wrong.append(f"{at}: not a {container}")
            return
        inner = {"PrimitiveType": row["PrimitiveItemType"]} if "PrimitiveItemType" in row else {"Type": row["ItemType"]}
        for k, x in enumerate(value) if container == "List" else value.items():
            check_value(spec, kind, inner, x, f"{at}.{k}", wrong)
    elif "PrimitiveType" in row:
        want = PRIMITIVES[row["PrimitiveType"]]
        if not isinstance(value, want) or want is int and isinstance(value, bool):
            wrong.append(f"{at}: {value!r} is no {row['PrimitiveType']}")
    elif row["Type"] == "Tag":
        check_properties(spec, kind, spec["PropertyTypes"]["Tag"]["Properties"], value, at, wrong)
    else:
        check_properties(spec, kind, spec["PropertyTypes"][f"{kind}.{row['Type']}"]["Properties"], value, at, wrong)


def check_properties(spec, kind, rows, value, at, wrong):
    if not isinstance(value, dict):
        wrong.append(f"{at}: no properties")
        return
    wrong += [f"{at}: {k} is unknown" for k in value if k not in rows]
    wrong += [f"{at}: {k} is missing" for k, r in rows.items() if r["Required"] and k not in value]
    for k, x in value.items():
        if k in rows:
            check_value(spec, kind, rows[k], x, f"{at}.{k}", wrong)


def references(v):
    """(name, attribute or None) of every Ref, GetAtt and Sub below v."""
    if isinstance(v, list):
        for x in v:
            yield from references(x)
    elif isinstance(v, dict):
        for k, x in v.items():
            if k == "Ref":
                yield x, None
            elif k == "Fn::GetAtt":
                yield x[0], x[1]
            elif k == "Fn::Sub":
                yield from ((m.split(".")[0], m.partition(".")[2] or None) for m in re.findall(r"\$\{([^!}]+)\}", x))
            else:
                yield from references(x)


def faults(template, spec):
    wrong = [f"no section {k}" for k in template if k not in ("AWSTemplateFormatVersion", "Description", "Parameters", "Conditions", "Resources", "Outputs")]
    resources, conditions = template["Resources"], template.get("Conditions", {})
    for name, r in resources.items():
        kind = r.get("Type")
        wrong += [f"{name}: no key {k}" for k in r if k not in OF_RESOURCES]
        wrong += [f"{name}: {k} cannot be {r[k]}" for k, may in POLICIES.items() if r.get(k, "Delete") not in may]
        if kind not in spec["ResourceTypes"]:
            wrong.append(f"{name}: no type {kind}")
            continue
        check_properties(spec, kind, spec["ResourceTypes"][kind]["Properties"], r.get("Properties", {}), name, wrong)
        if r.get("Condition") not in (None, *conditions):
            wrong.append(f"{name}: no condition {r['Condition']}")
    for name, attribute in references(template):
        if attribute is None:
            known = name in resources or name in template["Parameters"] or name.startswith("AWS::")
        else:
            known = name in resources and attribute in spec["ResourceTypes"].get(resources[name].get("Type"), {}).get("Attributes", {})
        if not known:
            wrong.append(f"nothing is {name}{'.' + attribute if attribute else ''}")
    return wrong


def planted(template):
    """The template with one fault at a time."""
    def change(what, **kw):
        bad = copy.deepcopy(template)
        r = bad["Resources"]
        exec(what, {"r": r, "t": bad, **kw})  # noqa: S102
        return what, bad
    yield change('r["Bucket"]["Type"] = "AWS::S3::Buckets"')
    yield change('r["Bucket"]["Properties"]["Encryption"] = {}')
    yield change('r["Events"]["Properties"]["MessageRetentionPeriod"] = "a day"')
    yield change('del r["EventsPolicy"]["Properties"]["Queues"]')
    yield change('r["EventsRule"]["Properties"]["Targets"] = {"Id": "x"}')
    yield change('del r["EventsRule"]["Properties"]["Targets"][0]["Arn"]')
    yield change('t["Outputs"]["EventsQueueUrl"]["Value"] = {"Ref": "Queue"}')
    yield change('t["Outputs"]["WorkerRoleArn"]["Value"] = {"Fn::GetAtt": ["WorkerRole", "Name"]}')
    yield change('r["Logs"]["Condition"] = "Never"')
    yield change('r["Logs"]["Deletion"] = "Delete"')
    yield change('r["Bucket"]["DeletionPolicy"] = "RetainOnCreate"')


def check_specification(t, template, spec):
    t.eq(faults(template, spec), [], f"{len(template['Resources'])} resources are as CloudFormation's specification has them")
    found = [(what, bool(faults(bad, spec))) for what, bad in planted(template)]
    t.ok(all(x for _, x in found), f"{len(found)} planted faults are found", found)
    t.ok(os.path.getsize(TEMPLATE) < 51200, "the template may be sent as text")


def statement_of(policy):
    return {s["Sid"]: s for s in policy["Statement"]}


def check_policies(t, template):
    r = subprocess.run([TOP + "/deploy/cloudformation/policies.py", "--check"], capture_output=True, text=True, check=False)
    t.ok(r.returncode == 0, "the policies are written from deploy/iam", r.stderr)
    stack = Stack(template, {"BucketName": "acme-laion", "Vpc": "yes"}, region="us-east-1", account="111122223333")
    made = {name: stack.properties(name) for name in stack.made()}
    for name, resource, key in (("droverd.json", "DroverdPolicy", "PolicyDocument"), ("job.json", "WorkerPolicy", "PolicyDocument"), ("job-vpc.json", "WorkerVpcPolicy", "PolicyDocument"), ("job-trust.json", "WorkerRole", "AssumeRolePolicyDocument"),
                                ("droverd-trust.json", "DroverdRole", "AssumeRolePolicyDocument")):
        with open(f"{TOP}/deploy/iam/{name}", encoding="utf-8") as f:
            text = f.read()
        for a, b in (("PARTITION", "aws"), ("REGION", "us-east-1"), ("ACCOUNT", "111122223333"), ("BUCKET", "acme-laion")):
            text = text.replace(a, b)
        t.eq(made[resource][key], json.loads(text), f"{name} is what the stack makes")
        t.ok(len(re.sub(r"\s", "", text)) <= 6144, f"{name} fits a managed policy")
    t.eq(made["WorkerRole"]["RoleName"], "drover-worker", "the role of jobs is the one that droverd may pass")
    passed = statement_of(made["DroverdPolicy"]["PolicyDocument"])["CodePassRole"]["Resource"]
    t.ok(stack.attribute("WorkerRole", "Arn") in passed, "by its ARN", passed)
    t.eq(sorted(os.path.basename(x) for x in glob.glob(TOP + "/deploy/iam/*.json")), ["droverd-trust.json", "droverd.json", "job-trust.json", "job-vpc.json", "job.json"], "there is no other policy")
    t.eq(set(stack.made()) - set(Stack(template, {}, region="us-east-1", account="111122223333").made()), {"WorkerVpcPolicy"}, "job-vpc is for those who need it")
    bucket = template["Resources"]["Bucket"]
    t.eq((bucket["DeletionPolicy"], bucket["UpdateReplacePolicy"]), ("RetainExceptOnCreate", "Retain"), "the bucket outlives the stack, unless the stack could not be made")


def check_events(t, template):
    stack = Stack(template, {}, region="eu-central-1", account="111122223333")
    rule, policy = stack.properties("EventsRule"), stack.properties("EventsPolicy")["PolicyDocument"]["Statement"][0]
    arn = stack.attribute("Events", "Arn")
    t.eq((rule["Targets"][0]["Arn"], policy["Resource"], policy["Condition"]["ArnEquals"]["aws:SourceArn"]), (arn, arn, stack.attribute("EventsRule", "Arn")), "the rule sends to the queue, which takes it from the rule alone")
    t.eq(rule["EventPattern"]["detail"]["TrainingJobName"], [{"prefix": "drover-"}], "events of drover's jobs only")
    lines = dict(x.split("=", 1) for x in stack.output("Settings").splitlines())
    t.eq(lines, {"AWS_REGION": "eu-central-1", "DROVER_BUCKET": "s3://drover-eu-central-1-111122223333", "DROVER_ROLE_ARN": "arn:aws:iam::111122223333:role/drover-worker", "DROVER_EVENTS_QUEUE_URL": stack.output("EventsQueueUrl")}, "its settings are droverd's")
    other = Stack(template, {"MakeLogGroup": "no", "DroverdRuns": "ecs-tasks.amazonaws.com"}, region="cn-north-1", account="111122223333")
    t.eq(set(stack.made()) - set(other.made()), {"Logs", "DroverdProfile"}, "what is there already, or not needed, is left out")
    t.ok(other.attribute("WorkerRole", "Arn").startswith("arn:aws-cn:iam::"), "in every partition")


def main():
    t = Tap()
    with open(TEMPLATE, encoding="utf-8") as f:
        template = load(f.read())
    with open(SPECIFICATION, encoding="utf-8") as f:
        spec = json.load(f)
    check_specification(t, template, spec)
    check_policies(t, template)
    check_events(t, template)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
