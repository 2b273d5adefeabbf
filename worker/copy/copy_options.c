/* The table of settings of `copy`. */
#include "copy_options.h"
#include "file_list.h"
#include "job/settings.h"
#include "secret.h"

#define AT(field) offsetof(struct copy_options, field)
static const struct setting rows[] = {
    {"from", NULL, SETTING_TEXT, NULL, 0, 0, AT(from),
     "sources: https://host/part-[000-127].parquet, s3://bucket/key or "
     "s3://bucket/prefix/*.parquet; "
     "several are separated by blanks"},
    {"to", NULL, SETTING_TEXT, NULL, 0, 0, AT(to),
     "each file's place, with {file_name}, {stem} or {part:05d}: s3://bucket/meta/{file_name}"},
    {"output_folder", "output", SETTING_TEXT, "", 0, 0, AT(output_folder),
     "where manifest and receipt go; default: the folder of `to`"},
    {"checksums", NULL, SETTING_TEXT, "", 0, 0, AT(checksums),
     "URL of lines 'SUM  NAME' as sha256sum or md5sum write them; each file must have one"},
    {"from_region", NULL, SETTING_TEXT, "", 0, 0, AT(region),
     "region of the sources in S3; default: the job's own"},
    {"unsigned", NULL, SETTING_FLAG, "false", 0, 0, AT(is_unsigned),
     "the sources in S3 are public: ask without a signature"},
    {"secret", NULL, SETTING_TEXT, "", 0, 0, AT(secret),
     "ARN in Secrets Manager or the Parameter Store of a token for the sources"},
    {"auth_header", NULL, SETTING_TEXT, "Authorization", 0, 0, AT(auth_header),
     "header that carries the secret"},
    {"auth_prefix", NULL, SETTING_TEXT, "Bearer ", 0, 0, AT(auth_prefix),
     "text before the secret in that header"},
    {"expect_files", NULL, SETTING_INT, "0", 0, COPY_FILES_MAX, AT(expect_files),
     "how many files there must be; 0: any number"},
    {"part", NULL, SETTING_INT, "0", 0, INT32_MAX, AT(part), "{part} of the first file"},
    {"files_at_once", NULL, SETTING_INT, "4", 1, COPY_FILES_AT_ONCE_MAX, AT(files_at_once),
     "files copied at once"},
    {"tries", NULL, SETTING_INT, "8", 1, 100, AT(tries),
     "failures of a file in a row, without progress, before it has failed"},
    {"stall_seconds", NULL, SETTING_INT, "60", 1, 3600, AT(stall_s),
     "a source slower than 1 kB/s for so long is asked again"},
    {"range_kb", NULL, SETTING_INT, "8192", 16, 65536, AT(range_kb),
     "kilobytes asked for in one request"},
    {"progress_interval", NULL, SETTING_INT, "60", 1, 3600, AT(progress_interval_s),
     "seconds between _progress.json"},
    {"stop_seconds", NULL, SETTING_INT, "90", 2, 115, AT(stop_s),
     "from SIGTERM to the end, at most"},
    {"checkpoint_seconds", NULL, SETTING_INT, "30", 1, 3600, AT(checkpoint_s),
     "between two times of saving how far the files are, for a run that goes on after a kill"},
};

bool copy_options_load(const json_t *hyperparameters, int argc, char *const *argv,
                       struct copy_options *ret, struct buf *faults)
{
    struct copy_options o = {0};
    struct err err = ERR_INIT;
    bool loaded =
        settings_load(rows, ARRAY_LEN(rows), &o, hyperparameters, argc, argv, NULL, faults);
    if (loaded && !file_list_check_target(o.to, &err)) {
        buf_addf(faults, "to '%.200s': %s\n", o.to, err.message);
    }
    if (loaded && o.secret[0] != '\0' && !secret_arn_ok(o.secret)) {
        buf_addf(faults,
                 "secret '%.200s': expected arn:aws:secretsmanager:... or arn:aws:ssm:...\n",
                 o.secret);
    }
    if (!loaded || faults->n > 0) {
        copy_options_done(&o);
        return false;
    }
    *ret = o;
    return true;
}

void copy_options_done(struct copy_options *o)
{
    settings_done(rows, ARRAY_LEN(rows), o);
}

void copy_options_help(struct buf *out)
{
    settings_help(rows, ARRAY_LEN(rows), out);
}
