/* The maps and templates of a request, expanded for one task. Private to this folder. */
#pragma once
#include "common/json.h"
#include "training_request.h"

#define HYPER_VALUE_MAX   2500
#define ENV_VALUE_MAX     512
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

/* Expands a template; `what` names it in errors. The caller frees *ret. */
bool request_expand(const struct training_request_input *in, const char *what, const char *template,
                    size_t max, char **ret, struct err *err) MUST_CHECK;

/* script_settings.c: adds what the script, its distribution and the compiler need. ERR_INVALID when
 * the hyperparameters are more than the API takes. */
bool script_settings_add(struct request_parts *q, struct err *err) MUST_CHECK;

/* training_fields.c: fields of CreateTrainingJob and of its AlgorithmSpecification. Nothing is
 * written for what the stage does not say. */
bool training_fields_expand(struct request_parts *q, struct err *err) MUST_CHECK;
void training_fields_algorithm(const struct request_parts *q, struct json_out *w);
void training_fields_channels(const struct request_parts *q, struct json_out *w);
void training_fields_switches(const struct request_parts *q, struct json_out *w);
