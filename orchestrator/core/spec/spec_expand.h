/* Templates of a campaign file for one task, and the globs of fan_out. */
#pragma once
#include "common/buf.h"
#include "common/json.h"

/* Expand {var}, {part:05d}, {{ for one task. Known: part uri file_name stem size attempt campaign
 * stage, and task vars. */
struct spec_task {
    int64_t campaign_id;
    const char *stage_name;
    int64_t task_id;
    int64_t seq;
    const char *uri; /* of the (first) input */
    int64_t size;
    int attempt_n;
    const json_t *vars; /* object of strings, or NULL */
};
bool spec_expand(const char *template, const struct spec_task *t, struct buf *out,
                 struct err *err) MUST_CHECK;
/* True when all names in the template are known: per-task names or keys of vars. err names the
 * first unknown one. */
bool spec_expand_check(const char *template, const json_t *vars, struct err *err) MUST_CHECK;
/* True when `key` matches the glob. '*' matches any characters but '/', '**' any characters. A
 * key with '/' at its end is the marker of a folder, which only a glob with one matches. Both are
 * s3:// URIs, or `key` is a key in the bucket of an s3:// glob. */
bool spec_glob_match(const char *glob, const char *key);
