/* The maps and templates of a request, expanded for one task. Private to this folder. */
#pragma once
#include "common/json.h"
#include "training_request.h"

#define ARGUMENT_MAX      256
#define S3_URI_MAX        1024
#define HYPER_N_MAX       (SPEC_PAIRS_MAX + 16) /* room for one's own, before they are counted */
#define ENVIRONMENT_N_MAX 100
#define CODE_CHANNEL      "code" /* of an isolated job: its script */

struct map_entry { /* of a map: expanded value */
    const char *key;
    char *value;
};
struct request_parts {
    const struct training_request_input *in;
    const struct spec_training *training; /* never NULL */
    struct map_entry hyper[HYPER_N_MAX];
    int hyper_n;
    struct map_entry env[ENVIRONMENT_N_MAX];
    int env_n;
    char *arguments[ARRAY_LEN(((struct spec_stage *)0)->command)];
    int arguments_n;
    char *channel_from[SPEC_CHANNELS_MAX]; /* NULL: a file system */
    char *checkpoint;
    char *output;
};

/* Expands a template; `what` names it in errors. max: bytes that CreateTrainingJob takes. The
 * caller frees *ret. */
bool request_expand(const struct training_request_input *in, const char *what, const char *template,
                    size_t max, char **ret, struct err *err) MUST_CHECK;

/* A list of texts at `key`. */
void request_texts(struct json_out *w, const char *key, const char *const *s, int n);
void request_map(struct json_out *w, const char *key, const struct map_entry *e, int n);
void request_map_sort(struct map_entry *e, int n);
/* VpcConfig of a stage; nothing without subnets. subnet: the one to use; NULL: all of the stage. */
void request_vpc(struct json_out *w, const struct spec_stage *stage, const char *subnet);

#define REQUEST_TAG_VALUE_MAX 256
struct request_tags { /* drover's own, then the stage's, then the campaign's that have other keys */
    const struct spec *spec;
    const char *install_id, *stage;
    int64_t campaign_id, part, attempt_id;
    const struct spec_pair *own;
    int own_n;
};
void request_tags(struct json_out *w, const struct request_tags *t);

/* script_settings.c: adds what the script, its distribution and the compiler need. ERR_INVALID when
 * the hyperparameters are more than the API takes. */
bool script_settings_add(struct request_parts *q, struct err *err) MUST_CHECK;

/* debug_fields.c: fields that watch the job. Each template of theirs once, with what it is called
 * and the bytes that it may become; ends with the first false. */
typedef bool debug_template_fn(void *ctx, const char *what, const char *template, size_t max);
bool debug_fields_each(const struct spec_training *t, debug_template_fn *fn, void *ctx);
bool debug_fields_expand(const struct request_parts *q, struct err *err) MUST_CHECK;
/* After they were seen to expand. */
void debug_fields_write(const struct request_parts *q, struct json_out *w);

/* training_fields.c: fields of CreateTrainingJob and of its AlgorithmSpecification. Nothing is
 * written for what the stage does not say. */
bool training_fields_expand(struct request_parts *q, struct err *err) MUST_CHECK;
void training_fields_algorithm(const struct request_parts *q, struct json_out *w);
void training_fields_channels(const struct request_parts *q, struct json_out *w);
void training_fields_switches(const struct request_parts *q, struct json_out *w);
