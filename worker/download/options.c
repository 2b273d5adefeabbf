/* The table of settings and its reader. Hyperparameters of SageMaker's own (sagemaker_*) are
 * ignored; anything else unknown is a fault with a guess. */
#include "options.h"
#include "common/cleanup.h"
#include <getopt.h>
#include <math.h>

enum kind { TEXT, INT, REAL, FLAG };
struct row {
    const char *name;
    const char *flag; /* a second, shorter name; NULL: none */
    enum kind kind;
    const char *dflt;
    int64_t min, max;
    size_t offset;
    const char *help;
};
#define AT(field) offsetof(struct options, field)
static const struct row rows[] = {
    {"url_list", "parquet", TEXT, "", 0, 0, AT(url_list),
     "parquet part: file, folder, s3://..., channel:NAME; default: the only channel"},
    {"output_folder", "output", TEXT, NULL, 0, 0, AT(output_folder),
     "folder or s3://bucket/prefix"},
    {"image_size", NULL, INT, "256", 1, 8192, AT(image_size), "target side in pixels"},
    {"resize_mode", NULL, TEXT, "border", 0, 0, AT(resize_mode),
     "no, border, keep_ratio, keep_ratio_largest, center_crop"},
    {"resize_only_if_bigger", NULL, FLAG, "false", 0, 0, AT(resize_only_if_bigger),
     "leave small images alone"},
    {"upscale_interpolation", NULL, TEXT, "lanczos", 0, 0, AT(upscale_interpolation),
     "nearest, linear, cubic, area, lanczos: when the side in question is below image_size"},
    {"downscale_interpolation", NULL, TEXT, "area", 0, 0, AT(downscale_interpolation),
     "the same, when it is above"},
    {"exif_orientation", NULL, FLAG, "false", 0, 0, AT(exif_orientation),
     "turn pictures upright; img2dataset does not"},
    {"skip_reencode", NULL, FLAG, "false", 0, 0, AT(skip_reencode),
     "keep the downloaded bytes where format and pixels would stay the same"},
    {"disable_all_reencoding", NULL, FLAG, "false", 0, 0, AT(disable_all_reencoding),
     "keep the downloaded bytes, unread, whatever they are"},
    {"fast_decode", NULL, FLAG, "false", 0, 0, AT(fast_decode),
     "JPEG: reduce while decoding; faster, pixels differ slightly"},
    {"encode_format", NULL, TEXT, "jpg", 0, 0, AT(encode_format), "jpg, png, webp"},
    {"encode_quality", NULL, INT, "95", 0, 101, AT(encode_quality),
     "jpg 0-100, webp 0-100 (101: lossless), png: compression 0-9"},
    {"number_sample_per_shard", NULL, INT, "10000", 1, 100000, AT(number_sample_per_shard),
     "rows of a shard"},
    {"oom_shard_count", NULL, INT, "5", 1, 10, AT(oom_shard_count), "digits of a shard's name"},
    {"url_col", NULL, TEXT, "", 0, 0, AT(url_col), "column of the URLs; default url or URL"},
    {"caption_col", NULL, TEXT, "auto", 0, 0, AT(caption_col),
     "column of the captions; auto: TEXT, text or caption; none"},
    {"save_additional_columns", NULL, TEXT, "", 0, 0, AT(save_additional_columns),
     "columns copied to json and parquet, [\"a\",\"b\"] or a,b"},
    {"timeout", NULL, INT, "10", 1, 600, AT(timeout_s), "seconds for one try of one URL, in all"},
    {"retries", NULL, INT, "0", 0, 10, AT(retries), "more tries after a transient failure"},
    {"min_image_size", NULL, INT, "0", 0, 16384, AT(min_image_size), "shorter side, at least"},
    {"max_image_area", NULL, REAL, "inf", 0, 0, AT(max_image_area), "pixels, at most"},
    {"max_aspect_ratio", NULL, REAL, "inf", 0, 0, AT(max_aspect_ratio), "longer by shorter side"},
    {"extract_exif", NULL, FLAG, "true", 0, 0, AT(extract_exif), "write the exif column"},
    {"compute_hash", NULL, TEXT, "sha256", 0, 0, AT(compute_hash), "sha256, sha512, md5, none"},
    {"verify_hash", NULL, TEXT, "none", 0, 0, AT(verify_hash),
     "[\"column\",\"sha256\"]: a body must have the hash of that column; type as compute_hash"},
    {"disallowed_header_directives", NULL, TEXT, "noai,noimageai,noindex,noimageindex", 0, 0,
     AT(disallowed_header_directives), "X-Robots-Tag words that forbid use; []: none"},
    {"user_agent_token", NULL, TEXT, "", 0, 0, AT(user_agent_token), "our name in the User-Agent"},
    {"thread_count", NULL, INT, "256", 1, 1024, AT(thread_count), "transfers at once"},
    {"host_connections", NULL, INT, "32", 1, 1024, AT(host_connections),
     "transfers at once from one host; other rows of it wait"},
    {"ignore_ssl_certificate", NULL, FLAG, "false", 0, 0, AT(ignore_ssl_certificate),
     "take https from hosts whose certificate is not valid"},
    {"processes_count", NULL, INT, "0", 0, 256, AT(processes_count),
     "decoding processes; 0: one a processor"},
    {"allow_net", NULL, TEXT, "", 0, 0, AT(allow_net),
     "ADDR[/LEN]:PORT opened although private (repeatable; for tests)"},
    {"dns", NULL, TEXT, "", 0, 0, AT(dns), "ADDR:PORT of the resolver; default: the system's"},
    {"incremental_mode", NULL, TEXT, "incremental", 0, 0, AT(incremental_mode),
     "incremental: keep finished shards; overwrite: remove what is there; extend: add shards"},
    {"retry_failed", NULL, FLAG, "false", 0, 0, AT(retry_failed),
     "the input is an earlier output: fetch its rows that failed to download once more"},
    {"progress_interval", NULL, INT, "60", 1, 3600, AT(progress_interval_s),
     "seconds between _progress.json"},
    {"stop_seconds", NULL, INT, "90", 2, 115, AT(stop_s),
     "from SIGTERM to the end, at most; the first half to finish shards, then they are given up"},
};

/* Settings of img2dataset that mean nothing here. The value that asks for what is done anyway is
 * taken without a word, any other is a fault with the reason. */
struct refused {
    const char *name;
    const char *taken; /* NULL: none */
    const char *why;
};
static const struct refused refused[] = {
    {"input_format", "parquet", "parts are parquet; DuckDB turns csv, json and text into it"},
    {"output_format", "webdataset", "shards are webdataset: tar, parquet and _stats.json"},
    {"bbox_col", "none", "nothing is blurred here"},
    {"subjob_size", NULL, "it belongs to Spark; a part is one job of drover's"},
    {"distributor", "multiprocessing", "drover distributes: each part is a job"},
    {"max_shard_retry", "1", "a shard that fails fails the job, and drover tries the part again"},
    {"enable_wandb", "false", "figures are in _progress.json, _stats.json and drover's metrics"},
    {"wandb_project", "img2dataset",
     "figures are in _progress.json, _stats.json and drover's metrics"},
};

static char **text_at(struct options *o, const struct row *r)
{
    return (char **)(void *)((char *)o + r->offset);
}

static const struct row *row_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(name, rows[i].name) == 0 ||
            (rows[i].flag != NULL && strcmp(name, rows[i].flag) == 0)) {
            return &rows[i];
        }
    }
    return NULL;
}

/* One of img2dataset's that has no place here? */
static bool is_refused(const char *name, const char *v, struct buf *faults)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        const struct refused *r = &refused[i];
        if (strcmp(name, r->name) != 0) {
            continue;
        }
        if (r->taken == NULL || v == NULL || strcasecmp(v, r->taken) != 0) {
            buf_addf(faults, "%s '%.60s' is not possible: %s\n", name, v != NULL ? v : "", r->why);
        }
        return true;
    }
    return false;
}

static void unknown(const char *name, struct buf *faults)
{
    const struct row *best = NULL;
    size_t best_n = 4;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t n = str_distance(str_of(name), str_of(rows[i].name));
        if (n < best_n) {
            best = &rows[i];
            best_n = n;
        }
    }
    buf_addf(faults, "unknown setting '%.60s'%s%s%s\n", name,
             best != NULL ? ": did you mean '" : "", best != NULL ? best->name : "",
             best != NULL ? "'?" : "");
}

static bool set_flag(bool *ret, const char *v)
{
    if (strcasecmp(v, "true") == 0 || strcmp(v, "1") == 0) {
        *ret = true;
    } else if (strcasecmp(v, "false") == 0 || strcmp(v, "0") == 0) {
        *ret = false;
    } else {
        return false;
    }
    return true;
}

static bool set_real(double *ret, const char *v)
{
    char *end;
    double d = strtod(v, &end);
    if (end == v || *end != '\0' || isnan(d) || d <= 0) {
        return false;
    }
    *ret = d;
    return true;
}

static void set(struct options *o, const struct row *r, const char *v, struct buf *faults)
{
    void *p = (char *)o + r->offset;
    switch (r->kind) {
    case TEXT: {
        char **at = text_at(o, r);
        char *both = NULL;
        if (strcmp(r->name, "allow_net") == 0 && *at != NULL && (*at)[0] != '\0') {
            both = xasprintf("%s,%s", *at, v);
        }
        free(*at);
        *at = both != NULL ? both : xstrdup(v);
        break;
    }
    case INT:
        if (!parse_i64(str_of(v), r->min, r->max, p, NULL)) {
            buf_addf(faults, "%s '%.60s': expected a whole number from %lld to %lld\n", r->name, v,
                     (long long)r->min, (long long)r->max);
        }
        break;
    case REAL:
        if (!set_real(p, v)) {
            buf_addf(faults, "%s '%.60s': expected a number above 0, or inf\n", r->name, v);
        }
        break;
    case FLAG:
        if (!set_flag(p, v)) {
            buf_addf(faults, "%s '%.60s': expected true or false\n", r->name, v);
        }
        break;
    }
}

static void load_flags(struct options *o, int argc, char *const *argv, struct buf *faults)
{
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            buf_addf(faults, "unexpected argument '%.60s'\n", argv[i]);
            continue;
        }
        AUTO_FREE char *name = xstrdup(argv[i] + 2);
        char *eq = strchr(name, '=');
        const char *v = NULL;
        if (eq != NULL) {
            *eq = '\0';
            v = argv[i] + 2 + (eq - name) + 1;
        }
        for (char *c = name; *c != '\0'; c++) {
            *c = *c == '-' ? '_' : *c;
        }
        const struct row *r = row_find(name);
        bool alone = i + 1 == argc || strncmp(argv[i + 1], "--", 2) == 0;
        if (r == NULL) {
            v = v == NULL && !alone ? argv[++i] : v;
            if (!is_refused(name, v, faults)) {
                unknown(name, faults);
            }
            continue;
        }
        if (v == NULL && r->kind == FLAG && alone) {
            v = "true";
        } else if (v == NULL && i + 1 < argc) {
            v = argv[++i];
        }
        if (v == NULL) {
            buf_addf(faults, "--%s needs a value\n", name);
        } else {
            set(o, r, v, faults);
        }
    }
}

int options_split(const char *text, char **store, char **words, int words_max)
{
    char *p = *store = xstrdup(text);
    int n = 0;
    size_t len = strlen(p);
    if (len >= 2 && p[0] == '[' && p[len - 1] == ']') {
        p[len - 1] = '\0';
        p++;
    }
    while (*p != '\0' && n < words_max) {
        p += strspn(p, " \t\n,");
        char *end;
        if (*p == '"' || *p == '\'') {
            end = strchr(p + 1, *p);
            p++;
            end = end == NULL ? p + strlen(p) : end;
        } else {
            end = p + strcspn(p, ",");
        }
        bool last = *end == '\0';
        *end = '\0';
        if (*p != '\0') {
            words[n++] = p;
        }
        p = last ? end : end + 1;
    }
    return n;
}

static int choose(const char *what, const char *v, const char *const *names, int names_n,
                  struct buf *faults)
{
    for (int i = 0; i < names_n; i++) {
        if (strcmp(v, names[i]) == 0) {
            return i;
        }
    }
    buf_addf(faults, "%s '%.60s': expected one of", what, v);
    for (int i = 0; i < names_n; i++) {
        buf_addf(faults, "%s %s", i == 0 ? "" : ",", names[i]);
    }
    buf_add_cstr(faults, "\n");
    return 0;
}

static enum resize_filter filter_of(const char *what, const char *v, struct buf *faults)
{
    static const char *const names[] = {"nearest", "linear", "bilinear", "cubic",
                                        "bicubic", "area",   "lanczos",  "lanczos4"};
    static const enum resize_filter filters[] = {FILTER_NEAREST, FILTER_LINEAR, FILTER_LINEAR,
                                                 FILTER_CUBIC,   FILTER_CUBIC,  FILTER_AREA,
                                                 FILTER_LANCZOS, FILTER_LANCZOS};
    return filters[choose(what, v, names, ARRAY_LEN(names), faults)];
}

static void work_out_image(struct options *o, struct buf *faults)
{
    static const char *const modes[] = {"no", "border", "keep_ratio", "keep_ratio_largest",
                                        "center_crop"};
    static const char *const formats[] = {"jpg", "png", "webp"};
    static const char *const hashes[] = {"none", "sha256", "md5", "sha512"};
    struct image_options *im = &o->image;
    im->mode = (enum resize_mode)choose("resize_mode", o->resize_mode, modes, 5, faults);
    im->format = (enum image_format)choose("encode_format", o->encode_format, formats, 3, faults);
    bool off = strcasecmp(o->compute_hash, "none") == 0 || o->compute_hash[0] == '\0';
    im->hash =
        (enum image_hash)choose("compute_hash", off ? "none" : o->compute_hash, hashes, 4, faults);
    if (im->format == IMAGE_PNG && o->encode_quality > 9) {
        buf_addf(faults, "encode_quality %lld: png takes a compression level from 0 to 9\n",
                 (long long)o->encode_quality);
    } else if (im->format == IMAGE_JPEG && o->encode_quality > 100) {
        buf_addf(faults, "encode_quality %lld: jpg takes 0 to 100\n", (long long)o->encode_quality);
    }
    im->quality = (int)o->encode_quality;
    im->size = (int)o->image_size;
    im->only_if_bigger = o->resize_only_if_bigger;
    im->min_size = (int)o->min_image_size;
    im->max_area = o->max_image_area;
    im->max_aspect = o->max_aspect_ratio;
    im->exif = o->extract_exif;
    im->orient = o->exif_orientation;
    im->keep_same = o->skip_reencode;
    im->keep_all = o->disable_all_reencoding;
    im->fast = o->fast_decode;
    im->up = filter_of("upscale_interpolation", o->upscale_interpolation, faults);
    im->down = filter_of("downscale_interpolation", o->downscale_interpolation, faults);
}

static void work_out_lists(struct options *o, struct buf *faults)
{
    static const char *const reserved[] = {
        "key",    "caption",       "url",  "width", "height", "original_width", "original_height",
        "status", "error_message", "exif", "md5",   "sha256", "sha512"};
    char *words[ADDR_RULES_MAX];
    AUTO_FREE char *store = NULL;
    int n = options_split(o->allow_net, &store, words, ADDR_RULES_MAX);
    for (int i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        if (addr_parse_rule(str_of(words[i]), &o->rules.at[o->rules.n], &err)) {
            o->rules.n++;
        } else {
            buf_addf(faults, "allow_net: %s\n", err.message);
        }
    }
    AUTO_FREE char *columns_store = NULL;
    n = options_split(o->save_additional_columns, &columns_store, words, COLUMNS_MAX - 2);
    for (int i = 0; i < n; i++) {
        for (size_t k = 0; k < ARRAY_LEN(reserved); k++) {
            if (strcmp(words[i], reserved[k]) == 0) {
                buf_addf(faults, "save_additional_columns: '%s' is a name of the output's own\n",
                         words[i]);
            }
        }
        o->extra_columns[o->extra_columns_n++] = xstrdup(words[i]);
    }
    AUTO_FREE char *verify_store = NULL;
    n = options_split(o->verify_hash, &verify_store, words, 3);
    if (n == 2 && strcmp(words[1], o->compute_hash) == 0) {
        o->verify_col = xstrdup(words[0]);
    } else if (n > 1 || (n == 1 && strcasecmp(words[0], "none") != 0)) {
        buf_addf(faults, "verify_hash '%.60s': expected [\"column\",\"%s\"], as compute_hash\n",
                 o->verify_hash, o->compute_hash);
    }
    n = options_split(o->disallowed_header_directives, &o->lists_, words, ROBOTS_DIRECTIVES_MAX);
    for (int i = 0; i < n; i++) {
        o->robots.directives[o->robots.n++] = str_trim(str_of(words[i]));
    }
    o->robots.token = str_of(o->user_agent_token);
}

bool options_load(const json_t *hyperparameters, int argc, char *const *argv, struct options *ret,
                  struct buf *faults)
{
    struct options o = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        set(&o, &rows[i], rows[i].dflt == NULL ? "" : rows[i].dflt, faults);
    }
    const char *key;
    json_t *v;
    /* json_object_foreach casts the const away itself only for reading. */
    for (void *it = json_object_iter((json_t *)(uintptr_t)hyperparameters); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)hyperparameters, it)) {
        key = json_object_iter_key(it);
        v = json_object_iter_value(it);
        const struct row *r = row_find(key);
        if (r != NULL) {
            set(&o, r, json_string_value(v), faults);
        } else if (strncmp(key, "sagemaker_", 10) != 0 &&
                   !is_refused(key, json_string_value(v), faults)) {
            unknown(key, faults);
        }
    }
    load_flags(&o, argc, argv, faults);
    static const char *const modes[] = {"incremental", "overwrite", "extend"};
    o.mode =
        (enum incremental_mode)choose("incremental_mode", o.incremental_mode, modes, 3, faults);
    if (o.retry_failed && strcmp(o.url_list, o.output_folder) == 0) {
        buf_add_cstr(faults, "retry_failed: output_folder must be a folder of its own\n");
    }
    if (o.output_folder[0] == '\0') {
        buf_add_cstr(faults, "output_folder is missing: a folder or s3://bucket/prefix\n");
    }
    work_out_image(&o, faults);
    work_out_lists(&o, faults);
    if (faults->n > 0) {
        options_done(&o);
        return false;
    }
    *ret = o;
    return true;
}

void options_done(struct options *o)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].kind == TEXT) {
            free(*text_at(o, &rows[i]));
        }
    }
    for (int i = 0; i < o->extra_columns_n; i++) {
        free(o->extra_columns[i]);
    }
    free(o->verify_col);
    free(o->lists_);
    *o = (struct options){0};
}

void options_help(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        buf_addf(out, "  --%-28s %s%s%s%s\n", r->name, r->help,
                 r->dflt == NULL      ? " (required)"
                 : r->dflt[0] != '\0' ? " ["
                                      : "",
                 r->dflt == NULL ? "" : r->dflt, r->dflt != NULL && r->dflt[0] != '\0' ? "]" : "");
        if (r->flag != NULL) {
            buf_addf(out, "  --%-28s the same as --%s\n", r->flag, r->name);
        }
    }
    buf_add_cstr(out,
                 "\nSettings of img2dataset that are refused here, other values than these:\n");
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        const char *taken = refused[i].taken;
        buf_addf(out, "  --%-28s %s%s%s\n", refused[i].name, taken != NULL ? taken : "",
                 taken != NULL ? ": " : "", refused[i].why);
    }
}
