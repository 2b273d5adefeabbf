/* drover request: the CreateTrainingJob request of a part, sent or not, or the requests of a stage
 * of a file. */
#include "campaign_file.h"
#include "cli.h"
#include "client.h"
#include "core/lowering/request_preview.h"
#include "core/spec/spec_parse.h"
#include "local_faults.h"
#include "print.h"
#include "ref.h"
#include "source_dirs.h"
#include "table.h"
#include <stdio.h>

static void print_request(const json_t *request)
{
    AUTO_FREE char *text = json_dumps(request, JSON_INDENT(2));
    (void)puts(text);
}

static int of_part(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!ref_read_part(cli, "request", &ref, &status)) {
        return status;
    }
    int64_t attempt = cli->opt.attempt > 0 ? cli->opt.attempt : ref.attempt;
    AUTO_BUF struct buf q = BUF_INIT(8192);
    buf_addf(&q, "?attempt=%lld", (long long)attempt);
    query_add(&q, "stage", ref_stage(cli, &ref));
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/parts/%lld/request%s", ref.campaign,
                    (long long)ref.part, buf_cstr(&q))) {
        return status;
    }
    if (print_machine(cli, r.json, NULL)) {
        return EXIT_OK;
    }
    print_request(json_object_get(r.json, "request"));
    say("%s", jstr(r.json, "note"));
    return EXIT_OK;
}

static int no_stage(const struct spec *s, const char *asked)
{
    AUTO_BUF struct buf names = BUF_INIT(2048);
    for (int i = 0; i < s->stages_n; i++) {
        buf_addf(&names, "%s%s", i == 0 ? "" : ", ", s->stages[i]->name);
    }
    AUTO_FREE char *hint = xasprintf("name one of: %s", buf_cstr(&names));
    return asked != NULL ? fail(EXIT_NOT_FOUND, hint, "there is no stage '%s'", asked)
                         : fail(EXIT_USAGE, hint, "the file has %d stages", s->stages_n);
}

static bool stage_requests(const struct spec *s, const struct spec_stage *stage, const char *region,
                           struct arena *a, struct buf *ret, struct err *err)
{
    const struct preview_attempt first = {0};
    if (stage->kind == SPEC_KIND_ENDPOINT) {
        return request_preview_endpoint(s, stage, region, ret, err);
    }
    if (stage->kind == SPEC_KIND_LUSTRE) {
        return request_preview_filesystem(s, stage, ret, err);
    }
    const struct spec_task task = request_preview_task(stage, a);
    return request_preview(s, stage, &task, &first, region, ret, err);
}

static int show_stage(struct cli *cli, const struct spec *s, const char *asked, const char *region,
                      struct arena *a)
{
    struct err err = ERR_INIT;
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    AUTO_JSON json_t *request = NULL;
    int i = asked != NULL ? spec_stage_find(s, asked) : s->stages_n == 1 ? 0 : -1;
    if (i < 0) {
        return no_stage(s, asked);
    }
    if (!stage_requests(s, s->stages[i], region != NULL ? region : "us-east-1", a, &out, &err) ||
        !json_parse(buf_str(&out), out.n, &request, &err)) {
        return fail(EXIT_USAGE, "drover request CAMPAIGN/PART shows it for a part", "%s",
                    err.message);
    }
    if (!print_machine(cli, request, NULL)) {
        print_request(request);
    }
    return EXIT_OK;
}

static int of_file(struct cli *cli)
{
    int status = EXIT_OK;
    struct campaign_file f;
    struct spec *s;
    const struct spec_defaults d = local_defaults();
    if (!campaign_file_read(cli->args[0], &f, &status) || !source_dirs_pack(&f, &status)) {
        campaign_file_done(&f);
        return status;
    }
    CLEANUP(arena_done)
    struct arena a;
    arena_init(&a, SPEC_ARENA_BYTES);
    AUTO_FREE struct faults *faults = xcalloc(1, sizeof *faults);
    if (spec_parse(campaign_file_sent(&f), &d, &a, &s, faults)) {
        status = show_stage(cli, s, cli->args_n > 1 ? cli->args[1] : NULL, d.region, &a);
    } else {
        status = local_faults_print(&f, faults, "drover request --dry again");
    }
    campaign_file_done(&f);
    return status;
}

int cmd_request(struct cli *cli)
{
    if (cli->opt.dry) {
        return of_file(cli);
    }
    if (cli->args_n > 1) {
        return fail(EXIT_USAGE, "drover request --dry FILE STAGE", "one part, please");
    }
    return of_part(cli);
}
