/* CloudWatch: GetMetricStatistics of AWS/SageMaker's Invocations, by JSON 1.0 and by Query. What is
 * counted are the requests that went to a model server, by variant and minute. See services.h. */
#include "common/clock.h"
#include "common/time_text.h"
#include "common/xml.h"
#include "local/app.h"
#include "services.h"
#include <stdio.h>

#define MINUTE_US      (60 * USEC_PER_SEC)
#define DATAPOINTS_MAX 1440
#define NAME_MAX_N     200
#define FIELD_MAX      256
#define LIST_MAX       30 /* members of a list of the form */
#define TIME_MAX_S     1e12

static void count_name(char out[static NAME_MAX_N], const char *endpoint, const char *variant,
                       int64_t minute)
{
    (void)snprintf(out, NAME_MAX_N, "%.63s/%.63s/%lld", endpoint, variant, (long long)minute);
}

void metrics_count_invocation(struct app *app, const char *endpoint, const char *variant, usec_t at)
{
    char name[NAME_MAX_N];
    count_name(name, endpoint, variant, at / MINUTE_US);
    json_t *o = record_find(app, RECORD_INVOCATIONS, name);
    if (o != NULL) {
        record_set_i64(o, "n", record_i64(o, "n") + 1);
        record_save(app, RECORD_INVOCATIONS, name);
        return;
    }
    json_t *all = app->records.all[RECORD_INVOCATIONS];
    if (json_object_size(all) == RECORDS_MAX) { /* the oldest makes room */
        record_remove(app, RECORD_INVOCATIONS, json_object_iter_key(json_object_iter(all)));
    }
    (void)!record_add(app, RECORD_INVOCATIONS, name, json_pack("{s:i}", "n", 1), NULL);
}

/* A list of the form: NAME.member.1, ... */
static json_t *form_list(const struct request *r, const char *name)
{
    json_t *list = NULL;
    for (int i = 1; i <= LIST_MAX; i++) {
        AUTO_BUF struct buf value = BUF_INIT(FIELD_MAX);
        char key[64];
        (void)snprintf(key, sizeof key, "%s.member.%d", name, i);
        if (!request_form(r, key, &value)) {
            break;
        }
        list = list == NULL ? json_array() : list;
        (void)json_array_append_new(list, json_string(buf_cstr(&value)));
    }
    return list;
}

static void form_text(const struct request *r, const char *name, const char *key, json_t *o)
{
    AUTO_BUF struct buf value = BUF_INIT(FIELD_MAX);
    if (request_form(r, name, &value)) {
        record_set_text(o, key, buf_cstr(&value));
    }
}

static void form_time(const struct request *r, const char *name, json_t *o)
{
    AUTO_BUF struct buf value = BUF_INIT(FIELD_MAX);
    usec_t t;
    if (request_form(r, name, &value)) {
        bool ok = clock_parse_rfc3339(buf_cstr(&value), &t, NULL);
        (void)json_object_set_new(o, name, ok ? record_epoch(t) : json_string(buf_cstr(&value)));
    }
}

json_t *metrics_form(const struct request *r)
{
    json_t *o = json_object();
    json_t *dimensions = NULL;
    AUTO_BUF struct buf period = BUF_INIT(FIELD_MAX);
    int64_t n;
    form_text(r, "Namespace", "Namespace", o);
    form_text(r, "MetricName", "MetricName", o);
    form_text(r, "Unit", "Unit", o);
    form_time(r, "StartTime", o);
    form_time(r, "EndTime", o);
    if (request_form(r, "Period", &period)) {
        bool ok = parse_i64(buf_str(&period), INT32_MIN, INT32_MAX, &n, NULL);
        (void)json_object_set_new(o, "Period",
                                  ok ? json_integer(n) : json_string(buf_cstr(&period)));
    }
    for (int i = 1; i <= LIST_MAX; i++) {
        char key[2][64];
        json_t *d = json_object();
        (void)snprintf(key[0], sizeof key[0], "Dimensions.member.%d.Name", i);
        (void)snprintf(key[1], sizeof key[1], "Dimensions.member.%d.Value", i);
        form_text(r, key[0], "Name", d);
        form_text(r, key[1], "Value", d);
        if (json_object_size(d) == 0) {
            json_decref(d);
            break;
        }
        dimensions = dimensions == NULL ? json_array() : dimensions;
        (void)json_array_append_new(dimensions, d);
    }
    if (dimensions != NULL) {
        (void)json_object_set_new(o, "Dimensions", dimensions);
    }
    json_t *statistics = form_list(r, "Statistics");
    if (statistics != NULL) {
        (void)json_object_set_new(o, "Statistics", statistics);
    }
    return o;
}

/* What is asked for, in minutes since the epoch. */
struct span {
    int64_t from, to, step; /* [from, to) */
};

/* False: answered. */
static bool span_read(struct request *r, struct span *ret)
{
    double from = json_number_value(json_object_get(r->input, "StartTime"));
    double to = json_number_value(json_object_get(r->input, "EndTime"));
    int64_t period = record_i64(r->input, "Period");
    if (period % 60 != 0) {
        reply_error(r, 400, "InvalidParameterValue",
                    "The parameter Period must be a multiple of 60.");
        return false;
    }
    if (json_object_get(r->input, "Statistics") == NULL ||
        json_object_get(r->input, "ExtendedStatistics") != NULL) {
        reply_error(r, 400, "InvalidParameterCombination",
                    "Statistics must be given; ExtendedStatistics are not played here.");
        return false;
    }
    if (!(from >= 0 && to < TIME_MAX_S)) {
        reply_error(r, 400, "InvalidParameterValue", "StartTime and EndTime must be dates.");
        return false;
    }
    if (!(from < to)) {
        reply_error(r, 400, "InvalidParameterCombination",
                    "The parameter StartTime must be less than the parameter EndTime.");
        return false;
    }
    ret->step = period / 60;
    ret->from = (int64_t)from / period * ret->step;
    ret->to = (int64_t)((to + 59) / 60);
    int64_t points = (ret->to - ret->from + ret->step - 1) / ret->step;
    if (points > DATAPOINTS_MAX) {
        reply_error(r, 400, "InvalidParameterCombination",
                    "You have requested up to %lld datapoints, which exceeds the limit of %d. You "
                    "may reduce the datapoints requested by increasing Period, or decreasing the "
                    "time range.",
                    (long long)points, DATAPOINTS_MAX);
        return false;
    }
    return true;
}

/* Both dimensions of the metric, and no other; a metric is found by all of its dimensions. */
static bool variant_of(const json_t *input, const char **ret_endpoint, const char **ret_variant)
{
    const json_t *d;
    size_t i;
    *ret_endpoint = *ret_variant = NULL;
    json_array_foreach(json_object_get(input, "Dimensions"), i, d)
    {
        bool endpoint = strcmp(record_text(d, "Name"), "EndpointName") == 0;
        *(endpoint ? ret_endpoint : ret_variant) = record_text(d, "Value");
        if (!endpoint && strcmp(record_text(d, "Name"), "VariantName") != 0) {
            return false;
        }
    }
    const char *unit = record_text(input, "Unit");
    return (unit[0] == '\0' || strcmp(unit, "None") == 0) && i == 2 && *ret_endpoint != NULL &&
           *ret_variant != NULL && strcmp(record_text(input, "Namespace"), "AWS/SageMaker") == 0 &&
           strcmp(record_text(input, "MetricName"), "Invocations") == 0;
}

static json_t *point(const json_t *statistics, int64_t minute, int64_t n)
{
    json_t *o =
        json_pack("{s:o, s:s}", "Timestamp", record_epoch(minute * MINUTE_US), "Unit", "None");
    size_t i;
    const json_t *s;
    json_array_foreach(statistics, i, s)
    {
        const char *name = json_string_value(s);
        bool sum = strcmp(name, "Sum") == 0 || strcmp(name, "SampleCount") == 0;
        (void)json_object_set_new(o, name, json_real(sum ? (double)n : 1.0));
    }
    return o;
}

/* What has come in by now; like AWS's in no order. */
static json_t *points(struct request *r, const struct span *s)
{
    json_t *list = json_array();
    const char *endpoint, *variant;
    char name[NAME_MAX_N];
    usec_t seen = clock_wall_us() - r->app->set.metric_delay_us;
    if (!variant_of(r->input, &endpoint, &variant)) {
        return list;
    }
    (void)snprintf(r->name, sizeof r->name, "%s", endpoint);
    for (int64_t at = s->from; at < s->to; at += s->step) {
        int64_t n = 0;
        for (int64_t m = at; m < MIN(s->to, at + s->step) && m * MINUTE_US <= seen; m++) {
            count_name(name, endpoint, variant, m);
            n += record_i64(record_find(r->app, RECORD_INVOCATIONS, name), "n");
        }
        if (n > 0) {
            json_t *p = point(json_object_get(r->input, "Statistics"), at, n);
            (void)json_array_insert_new(list, (size_t)at % (json_array_size(list) + 1), p);
        }
    }
    return list;
}

static void reply_points_xml(struct request *r, const json_t *list)
{
    struct buf *b = &r->reply.body;
    const json_t *p, *v;
    const char *key;
    size_t i;
    buf_add_cstr(b, "<GetMetricStatisticsResponse "
                    "xmlns=\"http://monitoring.amazonaws.com/doc/2010-08-01/\">"
                    "<GetMetricStatisticsResult><Datapoints>");
    json_array_foreach(list, i, p)
    {
        buf_add_cstr(b, "<member>");
        json_object_foreach((json_t *)(uintptr_t)p, key, v)
        {
            char at[32];
            if (strcmp(key, "Timestamp") == 0) {
                clock_format_rfc3339((usec_t)(json_number_value(v) * 1e6), false, at);
                buf_addf(b, "<Timestamp>%s</Timestamp>", at);
            } else if (json_is_string(v)) {
                buf_addf(b, "<%s>%s</%s>", key, json_string_value(v), key);
            } else {
                buf_addf(b, "<%s>%.1f</%s>", key, json_number_value(v), key);
            }
        }
        buf_add_cstr(b, "</member>");
    }
    buf_add_cstr(b, "</Datapoints><Label>");
    xml_escape(b, str_of(record_text(r->input, "MetricName")));
    buf_addf(b,
             "</Label></GetMetricStatisticsResult><ResponseMetadata><RequestId>%016llx"
             "</RequestId></ResponseMetadata></GetMetricStatisticsResponse>",
             (unsigned long long)r->id);
    reply_xml(r);
}

void metrics_get_statistics(struct request *r)
{
    struct span s;
    if (!span_read(r, &s)) {
        return;
    }
    json_t *list = points(r, &s);
    if (request_is_query(r)) {
        reply_points_xml(r, list);
        json_decref(list);
    } else {
        reply_json(r, json_pack("{s:s, s:o}", "Label", record_text(r->input, "MetricName"),
                                "Datapoints", list));
    }
}
