/* The table of settings and what follows from them. */
#include "options.h"
#include "common/cleanup.h"
#include "img2dataset.h"
#include "job/setting_value.h"
#include "job/settings.h"

#define AT(field)  offsetof(struct download_options, field)
#define DIRECTIVES "noai,noimageai,noindex,noimageindex"
static const struct setting rows[] = {
    {"url_list", "parquet", SETTING_OPTIONAL, "", 0, 0, AT(url_list),
     "file, folder (its files of input_format, sorted), glob, each local or s3://..., or "
     "channel:NAME; None: the only channel"},
    {"input_format", NULL, SETTING_TEXT, "parquet", 0, 0, AT(input_format),
     "parquet; csv, tsv, txt (a URL a line), json (a list of objects), jsonl, each also with .gz"},
    {"output_folder", "output", SETTING_TEXT, NULL, 0, 0, AT(output_folder),
     "folder or s3://bucket/prefix"},
    {"output_format", NULL, SETTING_TEXT, "webdataset", 0, 0, AT(output_format),
     "webdataset: a tar a shard; files: a folder a shard, with .jpg, .json and .txt of each image "
     "(in S3 a PUT each); parquet: the images in the .parquet; tfrecord; dummy: only _stats.json"},
    {"url_col", NULL, SETTING_TEXT, "url", 0, 0, AT(url_col),
     "column of the URLs; the default also finds URL"},
    {"caption_col", NULL, SETTING_OPTIONAL, "auto", 0, 0, AT(caption_col),
     "column of the captions; auto: TEXT, text or caption if there; None: no captions, no "
     ".txt"},
    {"save_additional_columns", NULL, SETTING_OPTIONAL, "", 0, 0, AT(save_additional_columns),
     "columns copied to json and parquet, [\"a\",\"b\"] or a,b"},
    {"bbox_col", NULL, SETTING_OPTIONAL, "", 0, 0, AT(bbox_col),
     "column of boxes to blur (faces), copied too: lists of [x0,y0,x1,y1], or such JSON, in "
     "fractions of the picture's sides (upright with exif_orientation)"},
    {"number_sample_per_shard", NULL, SETTING_INT, "10000", 1, 100000, AT(number_sample_per_shard),
     "rows per shard"},
    {"oom_shard_count", NULL, SETTING_INT, "5", 1, 10, AT(oom_shard_count),
     "digits in a shard's name"},
    {"image_size", NULL, SETTING_INT, "256", 1, 8192, AT(image_size), "target side in pixels"},
    {"resize_mode", NULL, SETTING_TEXT, "border", 0, 0, AT(resize_mode),
     "no, border, keep_ratio, keep_ratio_largest, center_crop"},
    {"resize_only_if_bigger", NULL, SETTING_FLAG, "False", 0, 0, AT(resize_only_if_bigger),
     "resize only images larger than image_size"},
    {"upscale_interpolation", NULL, SETTING_TEXT, "lanczos", 0, 0, AT(upscale_interpolation),
     "nearest, linear (bilinear), cubic (bicubic), area, lanczos (lanczos4): when the side is "
     "below image_size"},
    {"downscale_interpolation", NULL, SETTING_TEXT, "area", 0, 0, AT(downscale_interpolation),
     "the same, when the side is above image_size"},
    {"exif_orientation", NULL, SETTING_FLAG, "False", 0, 0, AT(exif_orientation),
     "rotate pictures upright; img2dataset does not"},
    {"skip_reencode", NULL, SETTING_FLAG, "False", 0, 0, AT(skip_reencode),
     "keep the downloaded bytes where format and pixels would stay the same; never of a picture "
     "with boxes (bbox_col)"},
    {"disable_all_reencoding", NULL, SETTING_FLAG, "False", 0, 0, AT(disable_all_reencoding),
     "keep the downloaded bytes without reading them"},
    {"fast_decode", NULL, SETTING_FLAG, "False", 0, 0, AT(fast_decode),
     "skip decoding work that is hardly visible in a smaller picture: JPEG, WebP"},
    {"encode_format", NULL, SETTING_TEXT, "jpg", 0, 0, AT(encode_format), "jpg, png, webp"},
    {"encode_quality", NULL, SETTING_INT, "95", 0, 101, AT(encode_quality),
     "jpg 0-100, webp 0-100 (101: lossless), png: compression 0-9"},
    {"min_image_size", NULL, SETTING_INT, "0", 0, 16384, AT(min_image_size),
     "minimum of the shorter side"},
    {"max_image_area", NULL, SETTING_REAL, "inf", 0, 0, AT(max_image_area), "maximum of pixels"},
    {"max_aspect_ratio", NULL, SETTING_REAL, "inf", 0, 0, AT(max_aspect_ratio),
     "maximum of longer / shorter side"},
    {"extract_exif", NULL, SETTING_FLAG, "True", 0, 0, AT(extract_exif), "write the exif column"},
    {"compute_hash", NULL, SETTING_OPTIONAL, "sha256", 0, 0, AT(compute_hash),
     "sha256, sha512, md5, None"},
    {"verify_hash", NULL, SETTING_OPTIONAL, "", 0, 0, AT(verify_hash),
     "[\"column\",\"sha256\"]: a body must have the hash of that column; type as compute_hash"},
    {"max_image_pixels", NULL, SETTING_INT, "100000000", 1, IMAGE_PIXELS_MAX, AT(max_image_pixels),
     "larger pictures are not decoded (image area too large); a decoding process has 1 GiB"},
    {"max_image_bytes", NULL, SETTING_INT, "20971520", 1, IMAGE_BODY_BYTES_MAX, AT(max_image_bytes),
     "larger bodies are not downloaded"},
    {"timeout", NULL, SETTING_INT, "10", 1, 600, AT(timeout_s), "seconds per attempt at one URL"},
    {"retries", NULL, SETTING_INT, "0", 0, 10, AT(retries),
     "further attempts after a transient failure, with growing pauses"},
    {"host_patience", NULL, SETTING_INT, "60", 1, 3600, AT(host_patience_s),
     "seconds a host may be silent before its rows fail; until then they wait and one is "
     "tried at a time"},
    {"network_patience", NULL, SETTING_INT, "600", 1, 86400, AT(network_patience_s),
     "seconds most hosts may be silent at once (our network is down, no row fails) before "
     "the part is given up; its finished shards are kept"},
    {"disallowed_header_directives", NULL, SETTING_OPTIONAL, DIRECTIVES, 0, 0,
     AT(disallowed_header_directives), "X-Robots-Tag words that forbid use; []: none"},
    {"user_agent_token", NULL, SETTING_OPTIONAL, "", 0, 0, AT(user_agent_token),
     "name to add to the User-Agent"},
    {"ignore_ssl_certificate", NULL, SETTING_FLAG, "False", 0, 0, AT(ignore_ssl_certificate),
     "accept https from hosts with an invalid certificate"},
    {"thread_count", NULL, SETTING_INT, "256", 1, 1024, AT(thread_count),
     "transfers at once per decoding process"},
    {"fetch_threads", NULL, SETTING_INT, "0", 0, 32, AT(fetch_threads),
     "fetching threads; 0: one per eight decoding processes"},
    {"host_connections", NULL, SETTING_INT, "0", 0, 1024, AT(host_connections),
     "transfers at once per host, its other rows wait; 0: an eighth of all, 32 to 64, or 1 in 16"},
    {"processes_count", NULL, SETTING_INT, "0", 0, 256, AT(processes_count),
     "decoding processes; 0: one per processor"},
    {"incremental_mode", NULL, SETTING_TEXT, "incremental", 0, 0, AT(incremental_mode),
     "incremental: keep finished shards; overwrite: remove the output first; extend: add shards"},
    {"retry_failed", NULL, SETTING_FLAG, "False", 0, 0, AT(retry_failed),
     "the input is an earlier output: fetch its failed rows again"},
    {"progress_interval", NULL, SETTING_INT, "60", 1, 3600, AT(progress_interval_s),
     "seconds between updates of _progress.json"},
    {"progress", NULL, SETTING_TEXT, "text", 0, 0, AT(progress),
     "text: lines, or a bar on a terminal; json: an object a line on stderr, {\"event\": "
     "\"progress\", ...} with the fields of _progress.json, at the end {\"event\": "
     "\"summary\", ...}; none"},
    {"s3_patience", NULL, SETTING_INT, "120", 1, 3600, AT(s3_patience_s),
     "seconds a request to the output is retried while S3 fails (5xx, SlowDown)"},
    {"hosts_patience", NULL, SETTING_INT, "600", 1, 86400, AT(hosts_patience_s),
     "where several hosts share a part: seconds another host may report no progress before the "
     "first one gives up; progress_interval should be a tenth of it"},
    {"enable_wandb", NULL, SETTING_FLAG, "False", 0, 0, AT(enable_wandb),
     "taken from img2dataset's commands, with a warning: nothing is sent to wandb"},
    {"wandb_project", NULL, SETTING_TEXT, "img2dataset", 0, 0, AT(wandb_project),
     "the same: no effect"},
    {"stop_seconds", NULL, SETTING_INT, "90", 2, 115, AT(stop_s),
     "maximum seconds from SIGTERM to the end; open shards are discarded after half of it"},
    {"dns", NULL, SETTING_OPTIONAL, "", 0, 0, AT(dns),
     "ADDR:PORT of the resolver; None: the system's"},
    {"allow_net", NULL, SETTING_LIST, "", 0, 0, AT(allow_net),
     "private ADDR[/LEN]:PORT to allow (repeatable; for tests)"},
};

/* Checks the settings url_col to verify_hash, input_format, output_format, and the directives of
 * X-Robots-Tag. */
json_t *options_shape(const struct download_options *o)
{
    json_t *all = json_object();
    bool shapes = false;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct setting *r = &rows[i];
        char number[64];
        shapes = (shapes || r->offset == AT(url_col)) && r->offset != AT(timeout_s);
        if (!shapes && r->offset != AT(disallowed_header_directives) &&
            r->offset != AT(input_format) && r->offset != AT(output_format)) {
            continue;
        }
        (void)json_object_set_new(all, r->name, json_string(settings_text(r, o, number)));
    }
    return all;
}

const struct setting *options_rows(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(rows);
    return rows;
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

static void work_out_input(struct download_options *o, struct buf *faults)
{
    static const char *const names[] = {"parquet", "csv",  "csv.gz",  "tsv",   "tsv.gz",  "txt",
                                        "txt.gz",  "json", "json.gz", "jsonl", "jsonl.gz"};
    static const enum input_format formats[] = {INPUT_PARQUET, INPUT_CSV,   INPUT_CSV,  INPUT_TSV,
                                                INPUT_TSV,     INPUT_TXT,   INPUT_TXT,  INPUT_JSON,
                                                INPUT_JSON,    INPUT_JSONL, INPUT_JSONL};
    o->format = formats[choose("input_format", o->input_format, names, ARRAY_LEN(names), faults)];
    o->gzip = str_ends(str_of(o->input_format), ".gz");
    if (o->retry_failed && o->format != INPUT_PARQUET) {
        buf_addf(faults, "retry_failed: it reads the .parquet of an earlier output, not %s\n",
                 o->input_format);
    }
}

/* Names that the columns of the output would have twice. */
static bool is_of_output(const struct download_options *o, const char *name)
{
    bool image = o->output == OUTPUT_PARQUET || o->output == OUTPUT_TFRECORD;
    return (image && strcmp(name, o->encode_format) == 0) ||
           (o->output == OUTPUT_TFRECORD && strcmp(name, "txt") == 0);
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
        if (is_of_output(o, words[i])) {
            buf_addf(faults, "%s: '%s' is a name of output_format %s's own\n",
                     i < n ? setting : "bbox_col", words[i], o->output_format);
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
    bool loaded = settings_load(rows, ARRAY_LEN(rows), &o, hyperparameters, argc, argv,
                                img2dataset_refuses, faults);
    static const char *const modes[] = {"incremental", "overwrite", "extend"};
    o.mode =
        (enum incremental_mode)choose("incremental_mode", o.incremental_mode, modes, 3, faults);
    if (o.retry_failed && same_place(o.url_list, o.output_folder)) {
        buf_add_cstr(faults, "retry_failed: output_folder must be a folder of its own\n");
    }
    o.output = (enum output_format)choose("output_format", o.output_format, output_format_names,
                                          OUTPUT_FORMAT_COUNT, faults);
    static const char *const reports[] = {"text", "json", "none"};
    o.report = (enum progress_report_as)choose("progress", o.progress, reports, 3, faults);
    work_out_input(&o, faults);
    work_out_image(&o, faults);
    work_out_net(&o, faults);
    work_out_columns(&o, faults);
    work_out_lists(&o, faults);
    if (!loaded || faults->n > 0) {
        options_done(&o);
        return false;
    }
    *ret = o;
    return true;
}

void options_done(struct download_options *o)
{
    settings_done(rows, ARRAY_LEN(rows), o);
    for (int i = 0; i < o->extra_columns_n; i++) {
        free(o->extra_columns[i]);
    }
    free(o->verify_col);
    free(o->lists_);
    *o = (struct download_options){0};
}

void options_help(struct buf *out)
{
    settings_help(rows, ARRAY_LEN(rows), out);
    buf_addf(out,
             "\nLimits: a picture has at most %d pixels a side and max_image_pixels, a\n"
             "body max_image_bytes, an encoded picture %u MiB, an input %d columns, the\n"
             "text of a row %u MiB; a picture is decoded in 10 CPU seconds and 1 GiB.\n",
             IMAGE_SIDE_MAX, IMAGE_OUT_BYTES_MAX >> 20, COLUMNS_MAX, ROW_TEXT_BYTES_MAX >> 20);
    buf_add_cstr(out,
                 "\nNumbers may be 1e6 or 1_000_000; flags True, False, true, 1, --NAME alone or\n"
                 "--noNAME; lists [\"a\",\"b\"], ['a','b'] or a,b; None: not given. Dashes and\n"
                 "underscores are one.\n");
    img2dataset_help(rows, ARRAY_LEN(rows), out);
}
