/* Policies of IAM, pure: a request is allowed when a statement allows it and none denies it. What
 * drover's policies use is played: Effect, Action, Resource, and Condition with StringEquals and
 * StringLike. See
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html */
#pragma once
#include "common/json.h"

enum policy_answer {
    POLICY_NOT_ALLOWED, /* no statement speaks of it */
    POLICY_ALLOWED,
    POLICY_DENIED /* a statement with Effect Deny */
};

struct policy_question {  /* borrows all of it */
    const char *action;   /* "s3:GetObject" */
    const char *resource; /* an ARN, or "*" for actions without one */
    json_t *context;      /* condition key -> text of the request; NULL: none */
};

/* True for a policy document whose every statement can be played. ERR_INVALID names the first that
 * cannot. */
bool policy_check(const json_t *document, struct err *err) MUST_CHECK;
/* The answer of documents together, an array of checked ones. */
enum policy_answer policy_ask(const json_t *documents, const struct policy_question *q);
