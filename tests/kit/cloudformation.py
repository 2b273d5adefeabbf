"""A CloudFormation template read and evaluated for an account: parameters, conditions, functions, and what resources are called there."""
import re

import yaml


class Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms."""


def short(loader, suffix, node):
    name = suffix if suffix in ("Ref", "Condition") else "Fn::" + suffix
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
        return {name: value.split(".", 1) if suffix == "GetAtt" else value}
    return {name: loader.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else loader.construct_mapping(node, deep=True)}


Loader.add_multi_constructor("!", short)
Loader.yaml_implicit_resolvers = {k: [x for x in v if x[0] != "tag:yaml.org,2002:timestamp"] for k, v in yaml.SafeLoader.yaml_implicit_resolvers.items()}


def load(text):
    return yaml.load(text, Loader)  # noqa: S506


class Stack:
    def __init__(self, template, parameters, region, account):
        self.template, self.region, self.account = template, region, account
        self.partition = "aws-cn" if region.startswith("cn-") else "aws"
        self.parameters = {k: parameters.get(k, str(p.get("Default", ""))) for k, p in template["Parameters"].items()}
        unknown = set(parameters) - set(self.parameters)
        wrong = [k for k, v in self.parameters.items() if v not in map(str, template["Parameters"][k].get("AllowedValues", [v]))]
        if unknown or wrong:
            raise ValueError(f"parameters: unknown {sorted(unknown)}, not allowed {wrong}")

    def made(self):
        """Names of the resources whose condition holds."""
        return [n for n, r in self.template["Resources"].items() if "Condition" not in r or self.condition(r["Condition"])]

    def condition(self, name):
        return self.value(self.template["Conditions"][name])

    def properties(self, name):
        return self.value(self.template["Resources"][name].get("Properties", {}))

    def output(self, name):
        return self.value(self.template["Outputs"][name]["Value"])

    def reference(self, name):
        own = {"AWS::Region": self.region, "AWS::AccountId": self.account, "AWS::Partition": self.partition}
        if name in own:
            return own[name]
        if name in self.parameters:
            value = self.parameters[name]
            return int(value) if self.template["Parameters"][name]["Type"] == "Number" else value
        p, kind = self.properties(name), self.template["Resources"][name]["Type"]
        if kind == "AWS::SQS::Queue":
            suffix = "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com"
            return f"https://sqs.{self.region}.{suffix}/{self.account}/{p['QueueName']}"
        return p[{"AWS::S3::Bucket": "BucketName", "AWS::IAM::Role": "RoleName", "AWS::Events::Rule": "Name"}[kind]]

    def attribute(self, name, attribute):
        kind, what = self.template["Resources"][name]["Type"], self.properties(name)
        at = f"{self.region}:{self.account}"
        arns = {"AWS::IAM::Role": lambda: f"iam::{self.account}:role/{what['RoleName']}", "AWS::SQS::Queue": lambda: f"sqs:{at}:{what['QueueName']}",
                "AWS::Events::Rule": lambda: f"events:{at}:rule/{what['Name']}"}
        if attribute != "Arn":
            raise KeyError(attribute)
        return f"arn:{self.partition}:{arns[kind]()}"

    def place(self, m):
        name, _, attribute = m[1].partition(".")
        return str(self.attribute(name, attribute) if attribute else self.reference(name))

    def value(self, v):
        if isinstance(v, list):
            return [self.value(x) for x in v]
        if not isinstance(v, dict):
            return v
        if len(v) == 1:
            (name, x), = v.items()
            if name == "Ref":
                return self.reference(x)
            if name == "Fn::GetAtt":
                return self.attribute(*x)
            if name == "Fn::Sub":
                return re.sub(r"\$\{([^!}]+)\}", self.place, x)
            if name == "Fn::If":
                return self.value(x[1] if self.condition(x[0]) else x[2])
            if name == "Fn::Equals":
                return self.value(x[0]) == self.value(x[1])
            if name == "Fn::Not":
                return not self.value(x[0])
            if name.startswith("Fn::"):
                raise ValueError(name)
        return {k: self.value(x) for k, x in v.items()}
