/* See local_faults.h. */
#include "local_faults.h"
#include "cli.h"
#include "print.h"

static const char *setting(const char *name, const char *other)
{
    const char *v = getenv(name);
    v = (v == NULL || v[0] == '\0') && other != NULL ? getenv(other) : v;
    return v != NULL && v[0] != '\0' ? v : NULL;
}

struct spec_defaults local_defaults(void)
{
    return (struct spec_defaults){.role = setting("DROVER_ROLE_ARN", NULL),
                                  .worker_image = setting("DROVER_WORKER_IMAGE", NULL),
                                  .bucket = setting("DROVER_BUCKET", NULL),
                                  .bucket_kms_key = setting("DROVER_BUCKET_KMS_KEY", NULL),
                                  .any_region = true,
                                  .region = setting("AWS_REGION", "AWS_DEFAULT_REGION")};
}

int local_faults_print(const struct campaign_file *f, const struct faults *faults,
                       const char *again)
{
    for (int i = 0; i < faults->n; i++) {
        const struct fault *x = &faults->at[i];
        AUTO_JSON json_t *e =
            json_pack("{s:i, s:i, s:s, s:s, s:s}", "line", x->pos.line, "column", x->pos.column,
                      "pointer", x->pointer, "message", x->message, "hint", x->hint);
        campaign_file_fault(f, e);
    }
    say("%d fault%s; next: correct the file, then %s", faults->n + faults->dropped,
        faults->n + faults->dropped == 1 ? "" : "s", again);
    return EXIT_USAGE;
}

struct spec_defaults local_defaults_or_any(void)
{
    struct spec_defaults d = local_defaults();
    d.role = d.role != NULL ? d.role : "arn:aws:iam::123456789012:role/drover";
    d.worker_image = d.worker_image != NULL ? d.worker_image : "drover/worker:1";
    d.bucket = d.bucket != NULL ? d.bucket : "drover";
    d.region = d.region != NULL ? d.region : "us-east-1";
    return d;
}

int local_faults_check(const struct campaign_file *f)
{
    struct spec *s;
    const struct spec_defaults d = local_defaults_or_any();
    CLEANUP(arena_done)
    struct arena a;
    arena_init(&a, SPEC_ARENA_BYTES);
    AUTO_FREE struct faults *faults = xcalloc(1, sizeof *faults);
    AUTO_FREE char *again =
        xasprintf("drover validate %s", strcmp(f->name, "stdin") == 0 ? "-" : f->name);
    return spec_parse(campaign_file_sent(f), &d, &a, &s, faults)
               ? EXIT_OK
               : local_faults_print(f, faults, again);
}
