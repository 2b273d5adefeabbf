#!/usr/bin/python3
"""The policies in deploy/iam against the source. Aim: each program may do what its code calls and nothing else, on resources of
its own name where IAM allows. Method: every string of the C source that is an operation of a service in Debian's botocore, and
the S3 functions each side calls, give the actions wanted; the commands of by-hand.md fill the files in, and make what the stack makes. The checks are shown faulty
policies and a new call, too.
"""
import copy
import fnmatch
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import botocore.session
import botocore.validate

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from kit import TOP, Tap, cloudformation

SERVICES = "sagemaker sagemaker-runtime logs service-quotas secretsmanager ssm sts pricing sqs ecr fsx cloudwatch ec2".split()
# S3's operations and the action of each: IAM has other names for them.
S3_ACTIONS = {"GetObject": "GetObject", "HeadObject": "GetObject", "PutObject": "PutObject", "DeleteObject": "DeleteObject", "ListObjectsV2": "ListBucket",
              "CreateMultipartUpload": "PutObject", "UploadPart": "PutObject", "CompleteMultipartUpload": "PutObject", "AbortMultipartUpload": "AbortMultipartUpload",
              "ListParts": "ListMultipartUploadParts", "ListMultipartUploads": "ListBucketMultipartUploads"}
# Operations that another action allows.
ACTION_OF = {"DeleteMessageBatch": "DeleteMessage"}
# The functions of common/s3.h and the operations behind them.
UPLOAD = "CreateMultipartUpload UploadPart CompleteMultipartUpload AbortMultipartUpload PutObject"
S3_FUNCTIONS = {"get": "GetObject", "head": "HeadObject", "head_sums": "HeadObject", "put": "PutObject", "put_lent": "PutObject", "delete": "DeleteObject", "list": "ListObjectsV2", "list_level": "ListObjectsV2", "list_page": "ListObjectsV2", "blocking_list_level": "ListObjectsV2", "blocking_get": "GetObject",
                "blocking_get_range": "GetObject", "blocking_get_file": "GetObject HeadObject", "blocking_head": "HeadObject", "blocking_put": "PutObject",
                "blocking_list": "ListObjectsV2", "blocking_list_each": "ListObjectsV2", "blocking_delete": "DeleteObject", "multipart_begin": UPLOAD, "multipart_add": UPLOAD, "multipart_finish": UPLOAD,
                "multipart_abort": "AbortMultipartUpload", "multipart_restore": "ListParts", "blocking_uploads_abort": "ListMultipartUploads AbortMultipartUpload",
                "parse_uri": "", "listing_done": "", "blocking_new": "", "blocking_free": "", "blocking_be_patient": "", "blocking_encrypt": "", "blocking_count": "", "multipart_leave": "", "multipart_save": "", "multipart_size": "", "multipart_part_bytes": "", "sums_add": "", "sums_fit": ""}
# Files that send S3 requests without common/s3.h, and their operations.
S3_BY_HAND = {"worker/copy/remote.c": ({"GET"}, {"GetObject"})}
# Files that send what others name.
CARRIERS = ("orchestrator/aws/json_call.c",)
# What other fields of a request ask for, by the action that sends it.
IMPLIED = [("sagemaker:CreateTrainingJob", "RoleArn", "iam:PassRole"), ("sagemaker:CreateTrainingJob", "Tags", "sagemaker:AddTags"),
           ("fsx:CreateFileSystem", "Tags", "fsx:TagResource"),
           *(("fsx:CreateDataRepositoryAssociation", "DataRepositoryPath", "iam:" + x) for x in ("CreateServiceLinkedRole", "AttachRolePolicy", "PutRolePolicy"))]
# Of FSx: it reads a bucket in a service-linked role of each file system, which it makes in the name of who links the bucket.
LINKED_ROLES = ":role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/*"
# What SageMaker does with a job's role: "CreateTrainingJob API: Execution Role Permissions" of its developer guide.
PLATFORM = {"job.json": "cloudwatch:PutMetricData ecr:BatchCheckLayerAvailability ecr:BatchGetImage ecr:GetAuthorizationToken ecr:GetDownloadUrlForLayer "
                        "logs:CreateLogGroup logs:CreateLogStream logs:DescribeLogStreams logs:PutLogEvents",
            "job-vpc.json": "ec2:CreateNetworkInterface ec2:CreateNetworkInterfacePermission ec2:DeleteNetworkInterface ec2:DeleteNetworkInterfacePermission "
                            "ec2:DescribeDhcpOptions ec2:DescribeNetworkInterfaces ec2:DescribeSecurityGroups ec2:DescribeSubnets ec2:DescribeVpcs fsx:DescribeFileSystems"}
# Actions for which IAM knows no resource, or SageMaker names none beforehand.
ANY_RESOURCE = set(PLATFORM["job-vpc.json"].split()) | {"fsx:DescribeDataRepositoryAssociations", "fsx:DescribeDataRepositoryTasks", "sagemaker:ListTrainingJobs", "sagemaker:ListModels", "sagemaker:ListEndpointConfigs", "sagemaker:ListEndpoints", "servicequotas:ListServiceQuotas", "servicequotas:ListAWSDefaultServiceQuotas", "servicequotas:RequestServiceQuotaIncrease", "pricing:GetProducts", "sts:GetCallerIdentity", "ecr:GetAuthorizationToken",
                                                           "cloudwatch:PutMetricData", "cloudwatch:GetMetricStatistics", "sagemaker:DeleteTrainingJob"}


def operations():
    """{operation: IAM prefix} of every service but S3."""
    session = botocore.session.get_session()
    known = {}
    for name in SERVICES:
        model = session.get_service_model(name)
        for op in model.operation_names:
            known.setdefault(op, {"monitoring": "cloudwatch"}.get(model.signing_name, model.signing_name))
    return known


def sources(*folders, without=()):
    """{path: text} of the C files below the folders."""
    found = {}
    for folder in folders:
        for path in glob.glob(f"{TOP}/{folder}/**/*.c", recursive=True):
            rel = os.path.relpath(path, TOP)
            if not rel.startswith(tuple(without)):
                with open(path, encoding="utf-8") as f:
                    found[rel] = f.read()
    return found


def strings_of(text):
    return re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r"/\*.*?\*/", "", text, flags=re.S))


def named(text, known):
    """Operations that a string of the text names: Op, Prefix.Op or Action=Op&..."""
    words = (re.fullmatch(r"(?:\w+\.|Action=)?([A-Z]\w+)(?:&.*)?", s) for s in strings_of(text))
    rows = re.findall(r"\bAWS_OP_([A-Z]\w+)", text)  # of aws/operation.def
    return {w.group(1) for w in words if w and w.group(1) in known} | set(rows)


def wanted(files, known):
    """(actions the files need, what the tables above do not know)"""
    actions, strange = set(), []
    for path, text in files.items():
        ops = named(text, known)
        actions |= {f"{known[op]}:{ACTION_OF.get(op, op)}" for op in ops}
        if '.service = "s3"' in text:
            methods, s3 = S3_BY_HAND.get(path, (None, set()))
            strange += [] if set(re.findall(r'\.method = "(\w+)"', text)) == methods else [f"{path} sends S3 requests by hand"]
            actions |= {"s3:" + S3_ACTIONS[op] for op in s3}
        elif re.search(r"\baws_send\(", text) and not ops and path not in CARRIERS:
            strange.append(f"{path} sends a call whose operation is not seen")
        for name in re.findall(r"\bs3_((?:blocking_|multipart_)?[a-z_]+)\(", text):
            if name not in S3_FUNCTIONS:
                strange.append(f"{path}: s3_{name}")
            actions |= {"s3:" + S3_ACTIONS[op] for op in S3_FUNCTIONS.get(name, "").split()}
    for sender, field, action in IMPLIED:
        if sender in actions and any(field in strings_of(t) for t in files.values()):
            actions.add(action)
    return actions, strange


def listed(x):
    return x if isinstance(x, list) else [x]


def allowed(policy, kind):
    return {a for s in policy["Statement"] if s["Effect"] == "Allow" and s["Sid"].startswith(kind) for a in listed(s["Action"])}


def loose(policy):
    """Statements that allow more than they need to: patterns of actions, and any resource where one could be named."""
    wrong = []
    for s in policy["Statement"]:
        actions, resources = listed(s["Action"]), listed(s["Resource"])
        wrong += [f"{s['Sid']}: {a}" for a in actions if "*" in a]
        wrong += [f"{s['Sid']}: {a} on *" for a in actions if "*" in resources and a not in ANY_RESOURCE]
        wrong += [f"{s['Sid']}: {r}" for r in resources if re.search(r":(training-job/|model/|endpoint-config/|endpoint/|log-stream:|secret:|parameter/|role/)", r) and not re.search(r"[:/]drover-[^/:]*$", r) and not r.endswith(LINKED_ROLES)]
        if not s["Sid"].startswith(("Code", "Platform")) and s["Effect"] == "Allow":
            wrong.append(f"{s['Sid']}: neither Code nor Platform")
    return wrong


def check_actions(t, policies, known):
    droverd, job = sources("orchestrator", without=("orchestrator/cli/", "orchestrator/common/")), sources("worker", without=("worker/local/",))
    for name, files in (("droverd.json", droverd), ("job.json", job)):
        actions, strange = wanted(files, known)
        t.eq(strange, [], f"{name}: every call of {len(files)} files is understood")
        t.eq(allowed(policies[name], "Code"), actions, f"{name}: its {len(actions)} actions are those of the code")
    for name, actions in PLATFORM.items():
        t.eq(allowed(policies[name], "Platform"), set(actions.split()), f"{name}: what SageMaker does with the role")
    more = dict(job)
    more["worker/new.c"] = 's3_head(c, &u, cb, x); send(x, "SageMaker.DescribeModel"); call = {.service = "s3", .method = "PUT"}; s3_blocking_copy(s);'
    actions, strange = wanted(more, known)
    t.ok("sagemaker:DescribeModel" in actions and len(strange) == 2, "a new call is seen, by its name, function or hand", (actions, strange))
    common = "".join(x for p, x in sources("orchestrator/common").items() if os.path.basename(p).startswith("s3"))
    ops = set(re.findall(r'\.operation = "(\w+)"', common)) | set(re.findall(r'define S3_OPERATION\s+"(\w+)"', common))
    t.eq(ops, set(S3_ACTIONS), "the S3 client has these operations")
    t.eq({op for s in S3_FUNCTIONS.values() for op in s.split()}, ops, "and each is behind one of its functions")
    t.eq([p for p, x in sources("orchestrator/cli").items() if re.search(r"common/(aws|s3)\.h|\baws_send\(|\bs3_\w+\(", x)], [], "the command line calls nothing of AWS")


def check_scope(t, policies):
    for name, p in policies.items():
        t.eq(loose(p), [], f"{name}: nothing wider than it must be")
        sids = [s["Sid"] for s in p["Statement"]]
        t.ok(len(set(sids)) == len(sids) and len(re.sub(r"\s", "", json.dumps(p))) <= 6144, f"{name}: names are used once, and it fits a managed policy")
    deny = [s for s in policies["droverd.json"]["Statement"] if s["Effect"] == "Deny"]
    t.eq([(s["Action"], s["Resource"]) for s in deny], [("sagemaker:DeleteTrainingJob", "*")], "deleting a job is denied")
    bad = copy.deepcopy(policies["droverd.json"])
    for s, change in zip(bad["Statement"], ({"Resource": "*"}, {"Action": "sagemaker:*"}, {}, {"Resource": "arn:aws:iam::1:role/x"})):
        s.update(change)
    t.eq(len(loose(bad)), 9, "wider ones are found")
    with open(f"{TOP}/orchestrator/settings.c", encoding="utf-8") as f:
        t.ok('"DROVER_JOB_PREFIX", CONFIG_STR, "drover"' in f.read(), "the names begin with the setting's default")


def check_statements(t, policies, known):
    """statements.md names for each statement the files that need it: their calls are its actions."""
    with open(f"{TOP}/deploy/iam/statements.md", encoding="utf-8") as f:
        rows = {(name, sid): re.findall(r"`([^`]+)`", files) for name, sid, files in re.findall(r"^\| `([\w.-]+)` \| `(\w+)` \| (.*) \|$", f.read(), re.M)}
    of = {(name, s["Sid"]): set(listed(s["Action"])) for name, p in policies.items() for s in p["Statement"] if s["Sid"].startswith("Code")}
    every = sources("orchestrator", "worker")
    t.eq((sorted(rows), sorted({f for files in rows.values() for f in files} - set(every))), (sorted(of), []), "statements.md has each statement of the code, and files that there are")
    left = {k: sorted(of[k] - wanted({f: every[f] for f in rows.get(k, ()) if f in every}, known)[0]) for k in of}
    t.eq({k: v for k, v in left.items() if v}, {}, "and the files of each call what it allows")
    idle = [(k, f) for k, files in rows.items() for f in files if k in of and not of[k] & wanted({f: every.get(f, "")}, known)[0] and "PassRole" not in k[1]]
    t.eq(idle, [], "and none names a file that calls nothing of it")


def check_roles(t, policies):
    roles = set()
    for path in glob.glob(f"{TOP}/deploy/examples/*.yaml"):
        with open(path, encoding="utf-8") as f:
            roles |= set(re.findall(r"^[^#]*\brole: \"?(arn:aws:iam::\d{12}:role/[\w/-]+)", f.read(), re.M))
    passed = [r for s in policies["droverd.json"]["Statement"] if s["Action"] == "iam:PassRole" for r in listed(s["Resource"])]
    t.ok(roles and all(any(fnmatch.fnmatch(r, p) for p in passed) for r in roles), "droverd may pass the roles of the examples", (roles, passed))
    for name, service in (("droverd", "ec2"), ("job", "sagemaker")):
        with open(f"{TOP}/deploy/iam/{name}-trust.json", encoding="utf-8") as f:
            s = json.load(f)["Statement"]
        t.eq([(x["Effect"], x["Principal"], x["Action"]) for x in s], [("Allow", {"Service": f"{service}.amazonaws.com"}, "sts:AssumeRole")], f"{name}: {service} alone takes the role")


def check_logs(t, policies):
    """The containers of jobs and of endpoints write to groups of their own: one for all jobs, one for each endpoint."""
    at = "arn:aws:logs:us-east-1:111122223333:log-group:/aws/sagemaker/"
    may = lambda action, r: any(action in listed(s["Action"]) and any(fnmatch.fnmatchcase(r, p) for p in listed(s["Resource"])) for s in policies["job.json"]["Statement"])  # noqa: E731
    for what, group, stream in (("a job", "TrainingJobs", "drover-1-train-0-a1/algo-1-1700000000"), ("an endpoint", "Endpoints/drover-1-serve-0-a1", "all/i-0123456789abcdef0")):
        asked = {"CreateLogGroup": group, "CreateLogStream": f"{group}:log-stream:{stream}", "DescribeLogStreams": group, "PutLogEvents": f"{group}:log-stream:{stream}"}
        t.eq([a for a, r in asked.items() if not may("logs:" + a, at + r)], [], f"the container of {what} may write its log")
        t.ok(not may("logs:PutLogEvents", at + asked["PutLogEvents"].replace("drover-", "other-")), "and no other's")


def blocks():
    with open(f"{TOP}/deploy/iam/by-hand.md", encoding="utf-8") as f:
        return f.read().split("```")[1::2]


NOTES = """#!/usr/bin/python3
import json, sys
with open(LOG, "a") as f: f.write(json.dumps([open(x[7:]).read() if x.startswith("file://") else x for x in sys.argv[1:]]) + "\\n")
"""


def request_of(words):
    """(operation, request) of a command of awscli."""
    operation, flags = words[1], dict(zip(words[2::2], words[3::2]))
    camel = lambda s: "".join(x.capitalize() for x in s.strip("-").split("-"))  # noqa: E731
    small = words[0] == "logs"
    request = {}
    for flag, value in flags.items():
        name = camel(flag)
        text = name.endswith(("Document", "Pattern"))
        request[name[0].lower() + name[1:] if small else name] = json.loads(value) if value[0] in "{[" and not text or value.isdigit() else value
    return camel(operation), request


def check_by_hand(t, folder):
    """The commands make what the stack makes: each is noted in awscli's place, and held against its service's model."""
    log, bin_ = folder + "/aws.log", folder + "/bin"
    os.mkdir(bin_)
    with open(bin_ + "/aws", "w", encoding="utf-8") as f:
        f.write(NOTES.replace("LOG", repr(log)))
    os.chmod(bin_ + "/aws", 0o755)
    r = subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(blocks())], cwd=folder, env={**os.environ, "PATH": bin_ + ":" + os.environ["PATH"]}, capture_output=True, text=True, check=False)
    calls = [json.loads(x) for x in open(log, encoding="utf-8")]
    t.ok(r.returncode == 0 and len(calls) >= 12, f"the {len(calls)} commands of by-hand.md", r)
    asked, session = {}, botocore.session.get_session()
    for words in calls:
        if words[:2] != ["s3", "mb"]:
            operation, request = request_of(words)
            model = session.get_service_model(words[0]).operation_model(operation)
            t.eq(botocore.validate.ParamValidator().validate(request, model.input_shape).generate_report(), "", f"{' '.join(words[:4])}: its service's model accepts it")
            asked.setdefault(operation, []).append(request)
    with open(f"{TOP}/deploy/cloudformation/prerequisites.yaml", encoding="utf-8") as f:
        stack = cloudformation.Stack(cloudformation.load(f.read()), {"BucketName": "acme-laion", "Vpc": "yes"}, region="us-east-1", account="111122223333")
    made = {n: stack.properties(n) for n in stack.made()}
    t.eq({x["RoleName"]: json.loads(x["AssumeRolePolicyDocument"]) for x in asked["CreateRole"]}, {made[n]["RoleName"]: made[n]["AssumeRolePolicyDocument"] for n in ("WorkerRole", "DroverdRole")}, "roles and who may take them are the stack's")
    t.eq([json.loads(x["PolicyDocument"]) for x in asked["PutRolePolicy"]], [made[n]["PolicyDocument"] for n in ("WorkerPolicy", "WorkerVpcPolicy", "DroverdPolicy")], "and so are the policies")
    t.eq(asked["AddRoleToInstanceProfile"], [{"InstanceProfileName": made["DroverdProfile"]["InstanceProfileName"], "RoleName": "droverd"}], "and the instance profile")
    queue = asked["CreateQueue"][0]
    policy = json.loads(queue["Attributes"].pop("Policy"))
    t.eq((queue["QueueName"], {k: json.loads(v) for k, v in queue["Attributes"].items()}), (made["Events"]["QueueName"], {k: v for k, v in made["Events"].items() if k != "QueueName"}), "and the queue")
    t.eq(policy, made["EventsPolicy"]["PolicyDocument"], "and who may send to it")
    rule, target = asked["PutRule"][0], asked["PutTargets"][0]
    t.eq((rule["Name"], json.loads(rule["EventPattern"]), target), (made["EventsRule"]["Name"], made["EventsRule"]["EventPattern"], {"Rule": made["EventsRule"]["Name"], "Targets": made["EventsRule"]["Targets"]}), "and the rule")
    t.eq(asked["PutRetentionPolicy"], [{"logGroupName": made["Logs"]["LogGroupName"], "retentionInDays": made["Logs"]["RetentionInDays"]}], "and the log group")


def filled(t, folder):
    """The policies as the first block of commands of by-hand.md writes them."""
    block = blocks()[0]
    os.symlink(f"{TOP}/deploy", f"{folder}/deploy")
    r = subprocess.run(["sh", "-ec", block], cwd=folder, capture_output=True, text=True, check=False)
    texts = {}
    for path in glob.glob(f"{folder}/build/iam/*.json"):
        with open(path, encoding="utf-8") as f:
            texts[os.path.basename(path)] = f.read()
    t.ok(r.returncode == 0 and len(texts) == len(glob.glob(f"{TOP}/deploy/iam/*.json")), "the commands of by-hand.md fill the files in", r)
    t.eq([n for n, x in texts.items() if re.search(r"PARTITION|REGION|ACCOUNT|BUCKET", x)], [], "and leave no placeholder")
    return {n: json.loads(x) for n, x in texts.items() if not n.endswith("-trust.json")}


def main():
    t = Tap()
    with tempfile.TemporaryDirectory() as folder:
        policies = filled(t, folder)
        check_by_hand(t, folder)
    known = operations()
    check_actions(t, policies, known)
    check_scope(t, policies)
    check_statements(t, policies, known)
    check_roles(t, policies)
    check_logs(t, policies)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
