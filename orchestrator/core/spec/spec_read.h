/* Shared by the spec*.c files that read a campaign file, and private to them: a place in the tree,
 * typed values, faults, variables. */
#pragma once
#include "campaign_key.h"
#include "common/yaml.h"
#include "spec_expand.h"
#include "spec_parse.h"

#define SPEC_VARS_MAX    64
#define SPEC_STRING_MAX  4096      /* one string after expansion */
#define SPEC_STRINGS_MAX (2 << 20) /* all of them; six times that as JSON at worst */

#define SPEC_STAGE_NAME_MAX 32
#define SPEC_ROW_LABEL_MAX  63
#define SPEC_ROW_VARS_MAX   32 /* {matrix.X} of one row */

/* A node and its path from the root. It lives on the stack of its reader. */
struct spec_node {
    const struct spec_node *up;
    const char *key; /* NULL at the top */
    const struct yaml_node *node;
    struct position pos; /* of the key, else of the node */
};

/* LATER: named in the format, not in this version. OTHER_KIND: of stages of another kind. */
enum key_status { KEY_OPEN, KEY_LATER, KEY_OTHER_KIND };
struct spec_known_key {
    const char *name;
    enum key_status status;
    const char *why; /* of LATER; or NULL */
};

struct spec_reader {
    struct arena *a;
    struct faults *faults;
    int yaml_faults_n; /* found while the text was read: a place among them needs no second one */
    const struct spec_defaults *defaults;
    struct spec_pair vars[SPEC_VARS_MAX];
    int vars_n;
    const struct spec_pair *row_vars; /* of the row of a matrix being read */
    int row_vars_n;
    bool row_vars_used[SPEC_ROW_VARS_MAX];
    bool judged;                          /* the stage being read was read to its end */
    const char *task_vars[SPEC_VARS_MAX]; /* of the stage being read: fan_out.vars */
    int task_vars_n;
    bool no_input; /* tasks of the stage being read have no input: no {uri} and its like */
    size_t strings_bytes;
    struct spec_retry retry[CAUSE_COUNT];
    const char *default_output; /* of a user's image that names none; NULL: none */
    const char *role;           /* security.role */
    const char *subnets[16];
    int subnets_n;
    const char *security_groups[5];
    int security_groups_n;
    struct spec_warm warm; /* the campaign's */
    bool encrypt_traffic;  /* security.encrypt_traffic and the keys there */
    const char *volume_kms_key, *output_kms_key;
    const char *named_types[16]; /* of limits.instances: taken as they are */
    int named_types_n;
    int tags_n; /* the campaign's */
};

/* A stage and its place in the file, for checks between stages. */
struct read_stage {
    struct spec_stage *stage;
    struct spec_node at;
    char key[24];
    const char *matrix; /* the name in the file of a stage that is one row of its matrix; or NULL */
};

/* What braces in a string mean. */
enum braces {
    BRACES_VARS,    /* {var} of the file only; {{ is a brace */
    BRACES_TEMPLATE /* expanded again for each task: per-task names and {{ stay */
};

/* Adds a fault at p. hint says what to write instead. */
void spec_fault(struct spec_reader *r, const struct spec_node *p, const char *code,
                const char *hint, const char *fmt, ...) PRINTF(5, 6);
/* The value of `key` in map p. False: absent, which is a fault when `required`. */
bool spec_child(struct spec_reader *r, const struct spec_node *p, const char *key, bool required,
                struct spec_node *ret);
struct spec_node spec_item(const struct spec_node *list, size_t i, char key[static 24]);
/* True when p is a map, or a list of at most max items; else a fault says what to write. */
bool spec_is_map(struct spec_reader *r, const struct spec_node *p, const char *hint);
bool spec_is_list(struct spec_reader *r, const struct spec_node *p, size_t max, const char *hint);
/* Adds a fault for every key that is not one of keys[n]; with `quiet` not for keys of a later
 * version. */
void spec_check_keys(struct spec_reader *r, const struct spec_node *p,
                     const struct spec_known_key *keys, size_t n, bool quiet);
/* The same with the keys that campaign_key.def gives the map. */
void spec_check_map(struct spec_reader *r, const struct spec_node *p, enum spec_map map);
/* A hint: the nearest of words[n] as "did you mean 'x'?", or all words. */
void spec_guess(const char *word, const char *const *words, size_t n, char *out, size_t out_n);

/* Readers of values. When a value is wrong they add a fault and give false or the default. */
bool spec_text(struct spec_reader *r, const struct spec_node *p, enum braces braces, size_t max,
               const char **ret);
/* As spec_text, but takes numbers and booleans too, as they are written. */
bool spec_scalar(struct spec_reader *r, const struct spec_node *p, enum braces braces, size_t max,
                 const char **ret);
bool spec_i64(struct spec_reader *r, const struct spec_node *p, int64_t min, int64_t max,
              int64_t *ret);
bool spec_bool(struct spec_reader *r, const struct spec_node *p, bool *ret);
bool spec_duration(struct spec_reader *r, const struct spec_node *p, int64_t min_s, int64_t max_s,
                   int64_t *ret);
bool spec_money(struct spec_reader *r, const struct spec_node *p, musd_t *ret);
bool spec_percent(struct spec_reader *r, const struct spec_node *p, int64_t *ret_ppm);
/* The index of the value in words[n]. `later`: words of a later version, ended by NULL, or NULL. */
bool spec_choice(struct spec_reader *r, const struct spec_node *p, const char *const *words,
                 size_t n, const char *const *later, int *ret);
/* A string or a list of strings. */
bool spec_texts(struct spec_reader *r, const struct spec_node *p, enum braces braces, size_t max_n,
                size_t max_len, const char **ret, int *ret_n);
bool spec_pairs(struct spec_reader *r, const struct spec_node *p, enum braces braces, size_t max_n,
                size_t key_max, size_t value_max, struct spec_pair *ret, int *ret_n);
bool spec_role(struct spec_reader *r, const struct spec_node *p, const char **ret);
bool spec_instance_type_ok(const char *s);
bool spec_s3(struct spec_reader *r, const struct spec_node *p, const char *text);
/* A fault at p unless text is one line: what AWS's pattern .* takes. */
void spec_one_line(struct spec_reader *r, const struct spec_node *p, const char *text);
/* spec_texts of lines. */
void spec_lines(struct spec_reader *r, const struct spec_node *p, enum braces braces, size_t max_n,
                size_t max_len, const char **ret, int *ret_n);
/* Keys and values of the pairs of map p are lines. */
void spec_pairs_lines(struct spec_reader *r, const struct spec_node *p,
                      const struct spec_pair *pairs, int n);

/* spec_matrix.c: a stage of the campaign, made of a stage of the file. */
struct spec_row {
    const struct yaml_node *stage; /* its keys, with those it extends; no `extends`, no `matrix` */
    struct spec_pair vars[SPEC_ROW_VARS_MAX]; /* {matrix.X}; NULL: not one text for all tasks */
    bool only[SPEC_ROW_VARS_MAX];             /* no key of the stage: must be used in a text */
    struct position pos[SPEC_ROW_VARS_MAX];
    int vars_n;
    const char *scales_with[SPEC_SCALES_MAX];
    int scales_with_n;
};
/* spec_scale.c: the keys that p, `scales_with` of a matrix, lists. Returns how many are right. */
int spec_scales_with(struct spec_reader *r, const struct spec_node *p,
                     const char *ret[static SPEC_SCALES_MAX]);
/* What row says of its matrix, which is called `group`. */
void spec_scale_row(const struct spec_reader *r, const struct spec_row *row, const char *group,
                    struct spec_stage *s);
/* The stages that p, of the list `stages`, stands for: itself, or one for each row of its matrix
 * (*ret_matrix), of which max may be. Gives their number, 1 at least; with faults as many as can be
 * judged. What extends
 * a stage that is not there keeps its `extends`. Nodes live in the arena. */
int spec_rows(struct spec_reader *r, const struct spec_node *stages, const struct spec_node *p,
              int max, struct spec_row rows[static SPEC_STAGES_MAX], bool *ret_matrix);
/* After the row was read: a fault for every value of its that changes nothing. */
void spec_rows_check(struct spec_reader *r, const struct spec_node *p, const struct spec_row *row);
/* spec_places.c: a fault at p, and false, when parts of the stage have one place: they would do
 * what `what` says. */
bool spec_part_place(struct spec_reader *r, const struct spec_node *p, const struct spec_stage *s,
                     const char *place, const char *what);
/* Faults of places that two stages share, after all stages and their needs.
 * !ordered: those are wrong, only rows of one matrix are compared. */
void spec_places(struct spec_reader *r, const struct read_stage *all, int n, bool ordered);
/* The stage of that name, NULL: none; and whether `stage` starts after `from` has
 * ended, directly or by way of others. */
const struct read_stage *spec_stage_called(const struct read_stage *all, int n, const char *name);
bool spec_stage_is_after(const struct read_stage *all, int n, const struct spec_stage *stage,
                         const char *from);
/* spec_stage.c: reads one stage into *s even when it has faults. A kind of a later version is one
 * fault. */
void spec_stage_read(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s);
bool spec_stage_name_ok(const char *s);
bool spec_is_stage_key(const char *s);
void spec_guess_stage_key(const char *word, char *out, size_t out_n);
/* spec_endpoint.c: the keys of a stage of kind endpoint. */
void spec_endpoint_read(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s);
/* After all stages and their needs: the model of each endpoint that serves a stage's. */
void spec_endpoint_link(struct spec_reader *r, const struct read_stage *all, int n);
/* spec_filesystem.c: the keys of a stage of kind lustre. */
void spec_filesystem_read(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s);
/* After all stages and their needs: the file systems that channels name. */
void spec_filesystem_link(struct spec_reader *r, const struct read_stage *all, int n);
/* spec_output.c: sets r->default_output by the variable {bucket}. */
void spec_default_output(struct spec_reader *r);
/* fan_out, hyperparameters' places, verify, done_if. */
void spec_read_fan_out(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s);
void spec_read_output(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s);
/* spec_worker.c: the keys and hyperparameters that drover-worker reads. Sets the output of a stage
 * that runs it. */
void spec_read_worker(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s);
/* spec_settings.c: a fault for each hyperparameter that the stage's drover-worker would refuse. */
void spec_check_settings(struct spec_reader *r, const struct spec_node *p,
                         const struct spec_stage *s);
/* spec_debug.c: debugger, profiler, tensorboard, experiment; and a name of the last. */
bool spec_experiment_name_ok(const char *s);
void spec_debug_read(struct spec_reader *r, const struct spec_node *p, struct spec_training *t);
/* spec_gate.c: after the stage's metrics. */
void spec_gate_read(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s);
/* After all rows of stage p: a fault when `of` names none of them. */
void spec_gate_rows(struct spec_reader *r, const struct spec_node *p,
                    const struct spec_stage *const *rows, int n);
/* spec_guard.c: limits, canary, breaker, quarantine, hang and twin of a stage. */
void spec_guard_read(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s);
/* True when the stage has a script: its hyperparameters are JSON. */
bool spec_has_script(const struct spec_node *p);
/* spec_training.c: framework, script, input and all other keys of a training job. Needs the stage's
 * types, image, network, fan_out and output. */
void spec_training_read(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s,
                        struct spec_training *t);
/* The words of `framework` at p; a fault gives false. */
struct image_wish;
bool spec_framework_words(struct spec_reader *r, const struct spec_node *p, struct image_wish *w);
/* Whether AWS's image for the type is one with GPUs, as *ret; a fault at p when there is none, or
 * when that is not known. */
bool spec_framework_gpu(struct spec_reader *r, const struct spec_node *p, const char *type,
                        bool *ret);
/* AWS's image of w in the region, as *ret; a fault at p gives false. */
bool spec_framework_image(struct spec_reader *r, const struct spec_node *p,
                          const struct image_wish *w, const char **ret);
/* A script's name: a .py or .sh below the folder it comes in. */
bool spec_script_ok(const char *s);
/* `volume_kms_key` of a stage, else the campaign's; none of a type whose disks are its own. */
void spec_volume_key(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s);
/* `tags` of a stage; its SPEC_STAGE_TAGS_MAX and the campaign's are `max` at most, which is what
 * `service` takes. */
void spec_stage_tags(struct spec_reader *r, const struct spec_node *p, const char *service, int max,
                     struct spec_pair *ret, int *ret_n);
/* spec_input.c: input and input_mode; and whether a text names a file system of this campaign,
 * "lustre:STAGE/folder". Worker index reads such a `from` by the channel SPEC_INDEX_CHANNEL. */
#define SPEC_INDEX_CHANNEL "shards"
bool spec_is_volume(const struct yaml_node *n);
void spec_input_read(struct spec_reader *r, const struct spec_node *p, const struct spec_stage *s,
                     struct spec_training *t);
/* spec_distribution.c: distribution and compiler. */
void spec_distribution_read(struct spec_reader *r, const struct spec_node *p,
                            const struct spec_stage *s, struct spec_training *t);
/* spec_value.c: a YAML value as JSON text, for a template. *ret_quoted: it is a string, which JSON
 * would put in quotes; it is not yet. */
bool spec_json_value(struct spec_reader *r, const struct spec_node *p, size_t max, const char **ret,
                     bool *ret_quoted);
/* A YAML value as JSON text; of a string the string itself, as it stands. */
bool spec_json_body(struct spec_reader *r, const struct spec_node *p, size_t max, const char **ret);
/* `hyperparameters` of a stage with a script. */
void spec_json_pairs(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s,
                     struct spec_training *t);
/* Tags of AWS; at most max_n. */
void spec_read_tags(struct spec_reader *r, const struct spec_node *p, size_t max_n,
                    struct spec_pair *ret, int *ret_n);
bool spec_kms_key(struct spec_reader *r, const struct spec_node *p, const char **ret);
/* off, no or false */
bool spec_is_off(const struct spec_node *p);
/* spec_shared.c: what the campaign and its stages both have. */
void spec_read_retry(struct spec_reader *r, const struct spec_node *p, struct spec_retry *rows);
void spec_read_vpc(struct spec_reader *r, const struct spec_node *p, const char **subnets,
                   int *subnets_n, const char **groups, int *groups_n);
/* Keys of stages of all kinds: each sets fields of *s. max: bytes of a name or a value. */
void spec_stage_security(struct spec_reader *r, const struct spec_node *p, struct spec_stage *s);
void spec_stage_environment(struct spec_reader *r, const struct spec_node *p, enum braces braces,
                            size_t max_n, size_t max, struct spec_stage *s);
/* A fault unless `type` is one that jobs, or endpoints when `hosting`, may have. */
void spec_check_type(struct spec_reader *r, const struct spec_node *p, const char *type,
                     bool hosting);
/* `image` at p. */
bool spec_image(struct spec_reader *r, const struct spec_node *p, const char **ret);
#define SPEC_SECRET_HINT                                                                           \
    "use a secret reference: keep it in Secrets Manager, give its ARN, and let the job's role "    \
    "read it"
/* Refuses whatever text or key below p looks like a secret and was not refused yet. */
void spec_no_secrets_below(struct spec_reader *r, const struct spec_node *p);
/* Refuses values that look like secrets: they would be in the database, in SageMaker's answers and
 * in backups. by_name: the names count, too. The fault does not repeat the value. */
void spec_no_secrets(struct spec_reader *r, const struct spec_node *map,
                     const struct spec_pair *pairs, int n, bool by_name);
/* Keys in the file replace the values in *w; others stay. */
void spec_read_warm(struct spec_reader *r, const struct spec_node *p, struct spec_warm *w);

/* spec_expand.c: takes the next piece of a template at *t: literal text, then an optional
 * {name:format}. */
struct spec_field {
    struct str name;
    struct str format;
};
bool spec_next_piece(const char **t, struct str *literal, bool *ret_field, struct spec_field *field,
                     struct err *err);
bool spec_is_task_variable(struct str name);
/* True when the template's value differs from task to task of the stage. */
bool spec_names_the_task(const struct spec_stage *s, const char *template);
