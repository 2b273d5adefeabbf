/* drover cost. */
#include "cli.h"
#include "client.h"
#include "print.h"
#include "ref.h"
#include "table.h"
#include <stdio.h>

static void cost_table(const struct cli *cli, const json_t *rows, const char *key, const char *head)
{
    struct text_table t = {0};
    table_column(&t, head, false);
    table_column(&t, "SECONDS", true);
    table_column(&t, "USD", true);
    size_t i;
    json_t *v;
    json_array_foreach(rows, i, v)
    {
        char seconds[TEXT_N], usd[TEXT_N];
        (void)number(jint(v, "seconds"), seconds);
        const char *name = jstr(v, key);
        table_row(&t, (const char *const[]){strcmp(name, "none") == 0 ? "done" : name, seconds,
                                            money(jint(v, "micro_usd"), usd)});
    }
    table_print(cli, &t);
}

static const char *percent(int64_t part, int64_t of, char buf[static TEXT_N])
{
    (void)snprintf(buf, TEXT_N, "%.1f %%", of > 0 ? 100.0 * (double)part / (double)of : 0.0);
    return buf;
}

/* "capacity wait" of "capacity_wait". */
static const char *words(const char *name, char buf[static TEXT_N])
{
    size_t i = 0;
    for (; name[i] != '\0' && i + 1 < TEXT_N; i++) {
        buf[i] = name[i];
        if (name[i] == '_') {
            buf[i] = ' ';
        }
    }
    buf[i] = '\0';
    return buf;
}

static int64_t sum_of(const json_t *phases, const char *key)
{
    int64_t sum = 0;
    size_t i;
    json_t *v;
    json_array_foreach(phases, i, v)
    {
        sum += jint(v, key);
    }
    return sum;
}

static void phase_table(const struct cli *cli, const json_t *phases)
{
    struct text_table t = {0};
    int64_t all = sum_of(phases, "micro_usd");
    char n[TEXT_N], usd[TEXT_N];
    table_column(&t, "PHASE", false);
    table_column(&t, "ELAPSED", true);
    table_column(&t, "SECONDS", true);
    table_column(&t, "USD", true);
    table_column(&t, "OF THE BILL", true);
    size_t i;
    json_t *v;
    json_array_foreach(phases, i, v)
    {
        char name[TEXT_N], time[TEXT_N], part[TEXT_N];
        int64_t musd = jint(v, "micro_usd");
        table_row(&t, (const char *const[]){words(jstr(v, "phase"), name), elapsed(v, time),
                                            number(jint(v, "seconds"), n), money(musd, usd),
                                            percent(musd, all, part)});
    }
    table_row(&t, (const char *const[]){"all", "", number(sum_of(phases, "seconds"), n),
                                        money(all, usd), ""});
    table_print(cli, &t);
}

/* USD by phase, one row for each stage. */
static void phase_stages(const struct cli *cli, const json_t *stages)
{
    struct text_table t = {0};
    static const char *const heads[] = {"STAGE",    "START",  "IMAGE", "DATA",
                                        "TRAINING", "UPLOAD", "WARM",  "OTHER"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        table_column(&t, heads[i], i > 0);
    }
    size_t i;
    json_t *g;
    json_array_foreach(stages, i, g)
    {
        char texts[ARRAY_LEN(heads)][TEXT_N];
        const char *cells[ARRAY_LEN(heads)] = {jstr(g, "stage")};
        const json_t *phases = json_object_get(g, "by_phase");
        for (size_t k = 1; k < ARRAY_LEN(heads); k++) { /* without the first, which costs nothing */
            cells[k] = money(jint(json_array_get(phases, k), "micro_usd"), texts[k]);
        }
        table_row(&t, cells);
    }
    table_print(cli, &t);
}

static void phase_advice(const struct cli *cli, const json_t *stages)
{
    size_t i, k;
    json_t *g, *a;
    json_array_foreach(stages, i, g)
    {
        json_array_foreach(json_object_get(g, "advice"), k, a)
        {
            char name[TEXT_N], time[TEXT_N], usd[TEXT_N];
            AUTO_FREE char *head = xasprintf("%s, %s, %s USD and %s: ", jstr(g, "stage"),
                                             words(jstr(a, "phase"), name),
                                             money(jint(a, "micro_usd"), usd), elapsed(a, time));
            text_print(cli, head, jstr(a, "text"));
        }
    }
}

static void phases_print(const struct cli *cli, const json_t *cost)
{
    char usd[TEXT_N], all[TEXT_N], part[TEXT_N];
    const json_t *phases = json_object_get(cost, "by_phase");
    const json_t *stages = json_object_get(cost, "stages");
    int64_t sum = sum_of(phases, "micro_usd");
    int64_t idle = jint(json_object_get(cost, "trained_nothing"), "micro_usd");
    phase_table(cli, phases);
    (void)printf("trained nothing: %s of %s USD, %s of the bill\n", money(idle, usd),
                 money(sum, all), percent(idle, sum, part));
    phase_stages(cli, stages);
    phase_advice(cli, stages);
}

int cmd_cost(struct cli *cli)
{
    int status;
    struct ref ref;
    CLEANUP(reply_done)
    struct client_reply r = {0};
    if (!ref_read(cli, cli->args[0], &ref, &status)) {
        return status;
    }
    AUTO_BUF struct buf query = BUF_INIT(8192);
    const char *by = cli->opt.by != NULL ? cli->opt.by : "";
    query_add(&query, "by", by);
    if (!client_get(cli, &r, &status, "/v1/campaigns/%s/cost%s", ref.campaign, buf_cstr(&query))) {
        return status;
    }
    if (print_machine(cli, r.json, NULL)) {
        return EXIT_OK;
    }
    char usd[TEXT_N], more[TEXT_N], limit[TEXT_N];
    const json_t *m = json_object_get(r.json, "metered");
    (void)printf("metered %s USD for %lld instance-seconds   reserved %s USD   budget %s\n",
                 money(jint(m, "micro_usd"), usd), (long long)jint(m, "seconds"),
                 money(jint(r.json, "reserved_micro_usd"), more),
                 jnull(r.json, "limit_micro_usd") ? "none"
                                                  : money(jint(r.json, "limit_micro_usd"), limit));
    if (strcmp(by, "phase") == 0) {
        phases_print(cli, r.json);
        return EXIT_OK;
    }
    if (strcmp(by, "cause") != 0) {
        cost_table(cli, json_object_get(r.json, "by_stage"), "stage", "STAGE");
    }
    if (strcmp(by, "stage") != 0) {
        cost_table(cli, json_object_get(r.json, "by_cause"), "cause", "CAUSE");
    }
    return EXIT_OK;
}
