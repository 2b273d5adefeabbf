/* Rules of CreateTrainingJob besides lengths and names: enums, patterns, duplicates, and what holds
 * between fields. sagemaker_check.c calls them. */
#pragma once
#include "local/http/request.h"

#define REQUEST_FAULTS_BYTES_MAX 8000 /* one enum is some 4,000 */

struct request_check { /* faults so far, in SageMaker's words */
    struct buf text;
    int n;
};
/* Adds one fault of a value at a field. */
void check_fail(struct request_check *c, const json_t *value, const char *field, const char *fmt,
                ...) PRINTF(4, 5);
/* Frees the text; false: there are faults, and they are the answer with this code. */
bool check_done(struct request *r, struct request_check *c, const char *code) MUST_CHECK;
/* A string of min to max characters; NULL when absent or wrong (reported). */
const char *check_text(struct request_check *c, const json_t *o, const char *key, const char *field,
                       bool required, size_t min, size_t max);
/* The structure at key; NULL when it is absent or not an object (reported when required). */
const json_t *check_part(struct request_check *c, const json_t *o, const char *key,
                         const char *field, bool required);
/* A word of an enum, when it is there; the list ends with NULL. */
void check_word(struct request_check *c, const json_t *o, const char *key, const char *field,
                const char *const *words);

/* Faults of single fields. */
void sagemaker_rules_fields(struct request_check *c, const json_t *in);
/* Faults of the channels of InputDataConfig, and what may not be together in one. The second comes
 * after all faults of fields; false: answered. */
void sagemaker_rules_channels(struct request_check *c, const json_t *in);
bool sagemaker_rules_channels_between(struct request *r);
/* Faults of a channel's FileSystemDataSource. */
void sagemaker_rules_mount(struct request_check *c, const json_t *source, const char *field);
/* Patterns and repeated keys of `Tags`. */
void sagemaker_rules_tags(struct request_check *c, const json_t *in);
/* Rules between fields; false: answered. */
bool sagemaker_rules_between(struct request *r);
/* The filters of ListTrainingJobs; false: answered. */
bool sagemaker_rules_list(struct request *r);
