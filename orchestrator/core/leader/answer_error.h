/* Which error a handler of the API gets for what AWS answered to its question. A refusal is for a
 * person; anything else may pass, and is worth another try. Pure. */
#pragma once
#include "common/aws_outcome.h"
#include "common/err.h"

enum err_code answer_error(const struct aws_failure *f);
/* Of a page of a log; next: one was asked for by its token, which AWS keeps for a day only. */
enum err_code answer_error_log(const struct aws_failure *f, bool next);
/* A model that was asked answered with this status; ERR_NONE: well. */
enum err_code answer_error_model(int status);
/* Deleting an object: it is not there, or it never was. */
bool answer_error_deleted(enum aws_outcome outcome, int status);
