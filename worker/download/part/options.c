/* The table of settings and its reader. SageMaker's own hyperparameters (sagemaker_*) are ignored;
 * any other unknown name is a fault with a suggestion. */
#include "options.h"
#include "common/cleanup.h"
#include "job/settings.h"
#include "options_value.h"

/* An OPTIONAL text may be None: not given, "". */
enum value_kind { TEXT, OPTIONAL, INT, REAL, FLAG };
struct option_row {
    const char *name;
    const char *flag; /* a second, shorter name; NULL: none */
    enum value_kind kind;
    const char *dflt;
    int64_t min, max;
    size_t offset;
    const char *help;
};
#define AT(field)  offsetof(struct download_options, field)
#define DIRECTIVES "noai,noimageai,noindex,noimageindex"
static const struct option_row rows[] = {
    {"url_list", "parquet", OPTIONAL, "", 0, 0, AT(url_list),
     "parquet part: file, folder, s3://..., channel:NAME; None: the only channel"},
    {"output_folder", "output", TEXT, NULL, 0, 0, AT(output_folder),
     "folder or s3://bucket/prefix"},
    {"url_col", NULL, TEXT, "url", 0, 0, AT(url_col),
     "column of the URLs; the default also finds URL"},
    {"caption_col", NULL, OPTIONAL, "auto", 0, 0, AT(caption_col),
     "column of the captions; auto: TEXT, text or caption if there; None: no captions, no .txt"},
    {"save_additional_columns", NULL, OPTIONAL, "", 0, 0, AT(save_additional_columns),
     "columns copied to json and parquet, [\"a\",\"b\"] or a,b"},
    {"bbox_col", NULL, OPTIONAL, "", 0, 0, AT(bbox_col),
     "column of boxes to blur (faces), copied too: lists of [x0,y0,x1,y1], or such JSON, in "
     "fractions of the picture's sides (upright with exif_orientation)"},
    {"number_sample_per_shard", NULL, INT, "10000", 1, 100000, AT(number_sample_per_shard),
     "rows per shard"},
    {"oom_shard_count", NULL, INT, "5", 1, 10, AT(oom_shard_count), "digits in a shard's name"},
    {"image_size", NULL, INT, "256", 1, 8192, AT(image_size), "target side in pixels"},
    {"resize_mode", NULL, TEXT, "border", 0, 0, AT(resize_mode),
     "no, border, keep_ratio, keep_ratio_largest, center_crop"},
    {"resize_only_if_bigger", NULL, FLAG, "False", 0, 0, AT(resize_only_if_bigger),
     "resize only images larger than image_size"},
    {"upscale_interpolation", NULL, TEXT, "lanczos", 0, 0, AT(upscale_interpolation),
     "nearest, linear (bilinear), cubic (bicubic), area, lanczos (lanczos4): when the side is "
     "below image_size"},
    {"downscale_interpolation", NULL, TEXT, "area", 0, 0, AT(downscale_interpolation),
     "the same, when the side is above image_size"},
    {"exif_orientation", NULL, FLAG, "False", 0, 0, AT(exif_orientation),
     "rotate pictures upright; img2dataset does not"},
    {"skip_reencode", NULL, FLAG, "False", 0, 0, AT(skip_reencode),
     "keep the downloaded bytes where format and pixels would stay the same; never of a picture "
     "with boxes (bbox_col)"},
    {"disable_all_reencoding", NULL, FLAG, "False", 0, 0, AT(disable_all_reencoding),
     "keep the downloaded bytes without reading them"},
    {"fast_decode", NULL, FLAG, "False", 0, 0, AT(fast_decode),
     "skip decoding work that is hardly visible in a smaller picture: JPEG, WebP"},
    {"encode_format", NULL, TEXT, "jpg", 0, 0, AT(encode_format), "jpg, png, webp"},
    {"encode_quality", NULL, INT, "95", 0, 101, AT(encode_quality),
     "jpg 0-100, webp 0-100 (101: lossless), png: compression 0-9"},
    {"min_image_size", NULL, INT, "0", 0, 16384, AT(min_image_size), "minimum of the shorter side"},
    {"max_image_area", NULL, REAL, "inf", 0, 0, AT(max_image_area), "maximum of pixels"},
    {"max_aspect_ratio", NULL, REAL, "inf", 0, 0, AT(max_aspect_ratio),
     "maximum of longer / shorter side"},
    {"extract_exif", NULL, FLAG, "True", 0, 0, AT(extract_exif), "write the exif column"},
    {"compute_hash", NULL, OPTIONAL, "sha256", 0, 0, AT(compute_hash), "sha256, sha512, md5, None"},
    {"verify_hash", NULL, OPTIONAL, "", 0, 0, AT(verify_hash),
     "[\"column\",\"sha256\"]: a body must have the hash of that column; type as compute_hash"},
    {"max_image_pixels", NULL, INT, "100000000", 1, IMAGE_PIXELS_MAX, AT(max_image_pixels),
     "larger pictures are not decoded (image area too large); a decoding process has 1 GiB"},
    {"max_image_bytes", NULL, INT, "20971520", 1, IMAGE_BODY_BYTES_MAX, AT(max_image_bytes),
     "larger bodies are not downloaded"},
    {"timeout", NULL, INT, "10", 1, 600, AT(timeout_s), "seconds per attempt at one URL"},
    {"retries", NULL, INT, "0", 0, 10, AT(retries),
     "further attempts after a transient failure, with growing pauses"},
    {"host_patience", NULL, INT, "60", 1, 3600, AT(host_patience_s),
     "seconds a host may be silent before its rows fail; until then they wait and one is "
     "tried at a time"},
    {"network_patience", NULL, INT, "600", 1, 86400, AT(network_patience_s),
     "seconds most hosts may be silent at once (our network is down, no row fails) before "
     "the part is given up; its finished shards are kept"},
    {"disallowed_header_directives", NULL, OPTIONAL, DIRECTIVES, 0, 0,
     AT(disallowed_header_directives), "X-Robots-Tag words that forbid use; []: none"},
    {"user_agent_token", NULL, OPTIONAL, "", 0, 0, AT(user_agent_token),
     "name to add to the User-Agent"},
    {"ignore_ssl_certificate", NULL, FLAG, "False", 0, 0, AT(ignore_ssl_certificate),
     "accept https from hosts with an invalid certificate"},
    {"thread_count", NULL, INT, "256", 1, 1024, AT(thread_count),
     "transfers at once per decoding process"},
    {"fetch_threads", NULL, INT, "0", 0, 32, AT(fetch_threads),
     "fetching threads; 0: one per eight decoding processes"},
    {"host_connections", NULL, INT, "0", 0, 1024, AT(host_connections),
     "transfers at once per host, its other rows wait; 0: a sixteenth of all, at least 32"},
    {"processes_count", NULL, INT, "0", 0, 256, AT(processes_count),
     "decoding processes; 0: one per processor"},
    {"incremental_mode", NULL, TEXT, "incremental", 0, 0, AT(incremental_mode),
     "incremental: keep finished shards; overwrite: remove the output first; extend: add shards"},
    {"retry_failed", NULL, FLAG, "False", 0, 0, AT(retry_failed),
     "the input is an earlier output: fetch its failed rows again"},
    {"progress_interval", NULL, INT, "60", 1, 3600, AT(progress_interval_s),
     "seconds between updates of _progress.json"},
    {"s3_patience", NULL, INT, "120", 1, 3600, AT(s3_patience_s),
     "seconds a request to the output is retried while S3 fails (5xx, SlowDown)"},
    {"stop_seconds", NULL, INT, "90", 2, 115, AT(stop_s),
     "maximum seconds from SIGTERM to the end; open shards are discarded after half of it"},
    {"dns", NULL, OPTIONAL, "", 0, 0, AT(dns), "ADDR:PORT of the resolver; None: the system's"},
    {"allow_net", NULL, OPTIONAL, "", 0, 0, AT(allow_net),
     "private ADDR[/LEN]:PORT to allow (repeatable; for tests)"},
};

/* Settings of img2dataset without a meaning here. The value that matches our behaviour is accepted
 * silently; any other is a fault with the reason. */
struct refused {
    const char *name;
    const char *taken;
    const char *why;
};
static const struct refused refused[] = {
    {"input_format", "parquet", "parts are parquet; DuckDB converts csv, json and text"},
    {"output_format", "webdataset", "shards are webdataset: tar, parquet and _stats.json"},
    {"subjob_size", "1000", "a setting of Spark; here a part is one job"},
    {"distributor", "multiprocessing", "drover distributes the work: each part is a job"},
    {"max_shard_retry", "1", "a failed shard fails the job, and drover retries the part"},
    {"enable_wandb", "false", "figures are in _progress.json, _stats.json and drover's metrics"},
    {"wandb_project", "img2dataset",
     "figures are in _progress.json, _stats.json and drover's metrics"},
};

/* Differences from img2dataset's defaults and meanings, for --help. */
struct differs {
    const char *name;
    const char *theirs;
    const char *why;
};
static const struct differs differs[] = {
    {"url_list", "required", "a job has one channel, and a folder holds one part"},
    {"output_folder", "images", "a folder in the container would be lost with it"},
    {"url_col", "url", "also finds URL, as in LAION"},
    {"caption_col", "None",
     "captions are saved when present, since adding them later means downloading again; None "
     "behaves like img2dataset"},
    {"bbox_col", "None",
     "a picture with boxes is always encoded again, also with skip_reencode; boxes are clipped to "
     "0..1; a row with invalid boxes or more than 1000 fails; 'blurrer not defined' does not "
     "occur"},
    {"processes_count", "1", "one per processor, since one process cannot use 72"},
    {"timeout", "of each read",
     "of the whole attempt: a host that drips bytes would hold it for ever"},
    {"retries", "of anything, at once", "of transient failures, with growing pauses"},
    {"user_agent_token", "added to the name of a Firefox", "added to the name drover-worker"},
    {"ignore_ssl_certificate", "absent", "1.47.0 always checks; later versions have the setting"},
};

static char **text_at(struct download_options *o, const struct option_row *r)
{
    return (char **)(void *)((char *)o + r->offset);
}

static const struct option_row *row_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(name, rows[i].name) == 0 ||
            (rows[i].flag != NULL && strcmp(name, rows[i].flag) == 0)) {
            return &rows[i];
        }
    }
    return NULL;
}

/* True for a setting of img2dataset that does not apply here. */
static bool is_refused(const char *name, const char *v, struct buf *faults)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        const struct refused *r = &refused[i];
        if (strcmp(name, r->name) != 0) {
            continue;
        }
        if (v == NULL || strcasecmp(v, r->taken) != 0) {
            buf_addf(faults, "%s '%.60s' is not possible: %s\n", name, v != NULL ? v : "", r->why);
        }
        return true;
    }
    return false;
}

static void unknown(const char *name, struct buf *faults)
{
    const struct option_row *best = NULL;
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

static void set(struct download_options *o, const struct option_row *r, const char *v,
                struct buf *faults)
{
    void *p = (char *)o + r->offset;
    switch (r->kind) {
    case TEXT:
    case OPTIONAL: {
        char **at = text_at(o, r);
        char *both = NULL;
        if (r->offset == AT(allow_net) && *at != NULL && (*at)[0] != '\0') {
            both = xasprintf("%s,%s", *at, v);
        }
        free(*at);
        *at = both != NULL ? both : xstrdup(r->kind == OPTIONAL && value_is_none(v) ? "" : v);
        value_unquote(*at);
        break;
    }
    case INT:
        if (!value_int(v, r->min, r->max, p)) {
            buf_addf(faults, "%s '%.60s': expected a whole number from %lld to %lld\n", r->name, v,
                     (long long)r->min, (long long)r->max);
        }
        break;
    case REAL:
        if (!value_real(v, p)) {
            buf_addf(faults, "%s '%.60s': expected a number above 0, or inf\n", r->name, v);
        }
        break;
    case FLAG:
        if (!value_flag(v, p)) {
            buf_addf(faults, "%s '%.60s': expected true or false\n", r->name, v);
        }
        break;
    }
}

/* The row of --noNAME or --no-NAME; NULL: not a negated flag. */
static const struct option_row *negated(const char *name)
{
    if (strncmp(name, "no", 2) != 0) {
        return NULL;
    }
    const struct option_row *r = row_find(name + (name[2] == '_' ? 3 : 2));
    return r != NULL && r->kind == FLAG ? r : NULL;
}

static void load_flags(struct download_options *o, int argc, char *const *argv, struct buf *faults)
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
        const struct option_row *r = row_find(name);
        const struct option_row *off = r == NULL && v == NULL ? negated(name) : NULL;
        if (off != NULL) {
            set(o, off, "False", faults);
            continue;
        }
        bool alone = i + 1 == argc || strncmp(argv[i + 1], "--", 2) == 0;
        if (r == NULL) {
            v = v == NULL && !alone ? argv[++i] : v;
            if (!is_refused(name, v, faults)) {
                unknown(name, faults);
            }
            continue;
        }
        if (v == NULL && r->kind == FLAG && alone) {
            v = "True";
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

/* Checks the settings url_col to verify_hash, and the directives of X-Robots-Tag. */
json_t *options_shape(const struct download_options *o)
{
    json_t *all = json_object();
    bool shapes = false;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct option_row *r = &rows[i];
        const char *at = (const char *)o + r->offset;
        char text[64] = "";
        shapes = (shapes || r->offset == AT(url_col)) && r->offset != AT(timeout_s);
        if (!shapes && r->offset != AT(disallowed_header_directives)) {
            continue;
        }
        switch (r->kind) {
        case TEXT:
        case OPTIONAL:
            break;
        case INT:
            (void)snprintf(text, sizeof text, "%lld",
                           (long long)*(const int64_t *)(const void *)at);
            break;
        case REAL:
            (void)snprintf(text, sizeof text, "%.17g", *(const double *)(const void *)at);
            break;
        case FLAG:
            (void)snprintf(text, sizeof text, "%s", *(const bool *)at ? "true" : "false");
            break;
        }
        bool is_text = r->kind == TEXT || r->kind == OPTIONAL;
        const char *v = is_text ? *(char *const *)(const void *)at : text;
        (void)json_object_set_new(all, r->name, json_string(v));
    }
    return all;
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

static void work_out_image(struct download_options *o, struct buf *faults)
{
    static const char *const modes[] = {"no", "border", "keep_ratio", "keep_ratio_largest",
                                        "center_crop"};
    static const char *const formats[] = {"jpg", "png", "webp"};
    static const char *const hashes[] = {"none", "sha256", "md5", "sha512"};
    struct image_options *im = &o->image;
    im->mode = (enum resize_mode)choose("resize_mode", o->resize_mode, modes, 5, faults);
    im->format = (enum image_format)choose("encode_format", o->encode_format, formats, 3, faults);
    const char *hash = o->compute_hash[0] != '\0' ? o->compute_hash : "none";
    im->hash = (enum image_hash)choose("compute_hash", hash, hashes, 4, faults);
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
    im->max_pixels = o->max_image_pixels;
    im->exif = o->extract_exif;
    im->orient = o->exif_orientation;
    im->keep_same = o->skip_reencode;
    im->keep_all = o->disable_all_reencoding;
    im->fast = o->fast_decode;
    if (im->keep_all && o->bbox_col[0] != '\0') {
        buf_addf(faults,
                 "disable_all_reencoding with bbox_col '%.60s': bytes that are kept unread show "
                 "what was to be blurred\n",
                 o->bbox_col);
    }
    im->up = filter_of("upscale_interpolation", o->upscale_interpolation, faults);
    im->down = filter_of("downscale_interpolation", o->downscale_interpolation, faults);
}

/* The words of a list setting; a fault when it is not a list. */
static int words_of(const char *name, const char *text, char **store, char **words, int words_max,
                    struct buf *faults)
{
    const char *why;
    int n = value_list(text, store, words, words_max, &why);
    if (n < 0) {
        buf_addf(faults, "%s '%.60s': %s; expected [\"a\",\"b\"] or a,b of at most %d words\n",
                 name, text, why, words_max);
    }
    return MAX(n, 0);
}

static void work_out_net(struct download_options *o, struct buf *faults)
{
    char *words[ADDR_RULES_MAX];
    AUTO_FREE char *store = NULL;
    int n = words_of("allow_net", o->allow_net, &store, words, ADDR_RULES_MAX, faults);
    for (int i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        if (addr_parse_rule(str_of(words[i]), &o->rules.at[o->rules.n], &err)) {
            o->rules.n++;
        } else {
            buf_addf(faults, "allow_net: %s\n", err.message);
        }
    }
}

static void work_out_columns(struct download_options *o, struct buf *faults)
{
    static const char *const reserved[] = {
        "key",    "caption",       "url",  "width", "height", "original_width", "original_height",
        "status", "error_message", "exif", "md5",   "sha256", "sha512"};
    char *words[COLUMNS_MAX];
    AUTO_FREE char *store = NULL;
    const char *setting = "save_additional_columns";
    bool saved = o->bbox_col[0] == '\0';
    int n = words_of(setting, o->save_additional_columns, &store, words,
                     COLUMNS_MAX - (saved ? 2 : 3), faults);
    for (int i = 0; i < n; i++) {
        saved = saved || strcmp(words[i], o->bbox_col) == 0;
    }
    words[n] = o->bbox_col;
    for (int i = 0; i < n + (saved ? 0 : 1); i++) {
        for (size_t k = 0; k < ARRAY_LEN(reserved); k++) {
            if (strcmp(words[i], reserved[k]) == 0) {
                buf_addf(faults, "%s: '%s' is a name of the output's own\n",
                         i < n ? setting : "bbox_col", words[i]);
            }
        }
        for (int k = 0; k < i; k++) {
            if (strcmp(words[i], words[k]) == 0) {
                buf_addf(faults, "save_additional_columns: '%.60s' is there twice\n", words[i]);
                break;
            }
        }
        o->extra_columns[o->extra_columns_n++] = xstrdup(words[i]);
    }
}

static void work_out_lists(struct download_options *o, struct buf *faults)
{
    char *words[ROBOTS_DIRECTIVES_MAX];
    AUTO_FREE char *store = NULL;
    int n = words_of("verify_hash", o->verify_hash, &store, words, 2, faults);
    if (n == 2 && o->image.hash != HASH_NONE && strcmp(words[1], o->compute_hash) == 0) {
        o->verify_col = xstrdup(words[0]);
    } else if (n > 0 && o->image.hash == HASH_NONE) {
        buf_addf(faults, "verify_hash '%.60s': compute_hash is None, it has to be the same hash\n",
                 o->verify_hash);
    } else if (n > 0) {
        buf_addf(faults, "verify_hash '%.60s': expected [\"column\",\"%s\"], as compute_hash\n",
                 o->verify_hash, o->compute_hash);
    }
    const char *directives = o->disallowed_header_directives;
    n = words_of("disallowed_header_directives", directives[0] != '\0' ? directives : DIRECTIVES,
                 &o->lists_, words, ROBOTS_DIRECTIVES_MAX, faults);
    for (int i = 0; i < n; i++) {
        o->robots.directives[o->robots.n++] = str_trim(str_of(words[i]));
    }
    o->robots.token = str_of(o->user_agent_token);
}

/* True when both are the same prefix, with or without a final slash. */
static bool same_place(const char *a, const char *b)
{
    struct str x = str_of(a);
    struct str y = str_of(b);
    while (x.n > 0 && x.p[x.n - 1] == '/') {
        x.n--;
    }
    while (y.n > 0 && y.p[y.n - 1] == '/') {
        y.n--;
    }
    return str_eq(x, y);
}

bool options_load(const json_t *hyperparameters, int argc, char *const *argv,
                  struct download_options *ret, struct buf *faults)
{
    struct download_options o = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        set(&o, &rows[i], rows[i].dflt == NULL ? "" : rows[i].dflt, faults);
    }
    const char *key;
    json_t *v;
    /* json_object_foreach casts const away; it only reads */
    for (void *it = json_object_iter((json_t *)(uintptr_t)hyperparameters); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)hyperparameters, it)) {
        key = json_object_iter_key(it);
        v = json_object_iter_value(it);
        const struct option_row *r = row_find(key);
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
    if (o.retry_failed && same_place(o.url_list, o.output_folder)) {
        buf_add_cstr(faults, "retry_failed: output_folder must be a folder of its own\n");
    }
    if (o.output_folder[0] == '\0') {
        buf_add_cstr(faults, "output_folder is missing: a folder or s3://bucket/prefix\n");
    }
    work_out_image(&o, faults);
    work_out_net(&o, faults);
    work_out_columns(&o, faults);
    work_out_lists(&o, faults);
    if (faults->n > 0) {
        options_done(&o);
        return false;
    }
    *ret = o;
    return true;
}

void options_done(struct download_options *o)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].kind == TEXT || rows[i].kind == OPTIONAL) {
            free(*text_at(o, &rows[i]));
        }
    }
    for (int i = 0; i < o->extra_columns_n; i++) {
        free(o->extra_columns[i]);
    }
    free(o->verify_col);
    free(o->lists_);
    *o = (struct download_options){0};
}

void options_help(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct option_row *r = &rows[i];
        const char *dflt = r->dflt == NULL       ? "required"
                           : r->dflt[0] != '\0'  ? r->dflt
                           : r->kind == OPTIONAL ? "None"
                                                 : "";
        settings_help_line(out, r->name, "%s [%s]", r->help, dflt);
        if (r->flag != NULL) {
            settings_help_line(out, r->flag, "the same as --%s", r->name);
        }
    }
    buf_addf(out,
             "\nLimits: a picture has at most %d pixels a side and max_image_pixels, a\n"
             "body max_image_bytes, an encoded picture %u MiB, an input %d columns, the\n"
             "text of a row %u MiB; a picture is decoded in 10 CPU seconds and 1 GiB.\n",
             IMAGE_SIDE_MAX, IMAGE_OUT_BYTES_MAX >> 20, COLUMNS_MAX, ROW_TEXT_BYTES_MAX >> 20);
    buf_add_cstr(out,
                 "\nNumbers may be 1e6 or 1_000_000; flags True, False, true, 1, --NAME alone or\n"
                 "--noNAME; lists [\"a\",\"b\"], ['a','b'] or a,b; None: not given. Dashes and\n"
                 "underscores are one.\n"
                 "\nSettings of img2dataset that mean nothing here: only this value is taken:\n");
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        settings_help_line(out, refused[i].name, "%s: %s", refused[i].taken, refused[i].why);
    }
    buf_add_cstr(out, "\nWhere img2dataset's default or meaning is another:\n");
    for (size_t i = 0; i < ARRAY_LEN(differs); i++) {
        settings_help_line(out, differs[i].name, "theirs: %s; %s", differs[i].theirs,
                           differs[i].why);
    }
}
