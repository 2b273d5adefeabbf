/* Aim: a gate is stored as it was written, for the rows that `of` names, and each mistake in one
 * gives one fault with its place and what to write instead. Method: a training stage with two
 * metrics and a line of its own for the gate. */
#include "core/spec/spec_json.h"
#include "spec_text.h"

#define HEAD                                                                                       \
    "name: c1\n" /* line 1 */                                                                      \
    "stages:\n"                                                                                    \
    "  - name: train\n"                                                                            \
    "    image: r/x:1\n"                                                                           \
    "    instance_type: ml.p4d.24xlarge\n"                                                         \
    "    metrics: [{name: step, regex: 's=(.)'}, {name: loss, regex: 'l=(.)'}]\n"

static struct parsed *parse_gate(const char *tail)
{
    AUTO_FREE char *text = xasprintf("%s%s", HEAD, tail);
    return parse(text);
}

static void test_spec_gate__it_is_stored_and_reads_back(void **state)
{
    (void)state;
    static const struct {
        const char *tail;
        bool has_below, has_above;
        double below, above;
    } rows[] = {
        {"    gate: {metric: loss, below: 3.0, else: hold}\n", true, false, 3, 0},
        {"    gate: {metric: loss, below: 3}\n", true, false, 3, 0},
        {"    gate: {metric: loss, above: -1.5e-3}\n", false, true, 0, -0.0015},
        {"    gate: {metric: loss, above: 0, below: 1}\n", true, true, 1, 0},
        {"    gate: {metric: loss, below: 3, of: {instance_count: 1}}\n", true, false, 3, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct parsed *p = parse_gate(rows[i].tail);
        struct arena a;
        struct spec *back;
        struct err err = ERR_INIT;
        show(&p->faults);
        assert_true(p->good);
        AUTO_JSON json_t *v = spec_to_json(p->spec);
        arena_init(&a, 1 << 24);
        assert_true(spec_from_json(v, &a, &back, &err));
        const struct spec_gate *both[] = {&p->spec->stages[0]->gate, &back->stages[0]->gate};
        for (size_t k = 0; k < ARRAY_LEN(both); k++) {
            const struct spec_gate *g = both[k];
            assert_string_equal(g->metric, "loss");
            assert_true(g->has_below == rows[i].has_below && g->has_above == rows[i].has_above);
            assert_true(g->below == rows[i].below && g->above == rows[i].above);
        }
        arena_done(&a);
        parsed_free(p);
    }
}

/* The largest bound, as jsonb writes it: all digits, with a fraction or without. */
static void test_spec_gate__the_largest_bound_comes_back_from_jsonb(void **state)
{
    (void)state;
    static const char *const written[] = {"1000000000000000", "1000000000000000.0"};
    struct parsed *p = parse_gate("    gate: {metric: loss, below: 1e15}\n");
    show(&p->faults);
    assert_true(p->good);
    AUTO_JSON json_t *v = spec_to_json(p->spec);
    AUTO_FREE char *text = json_dumps(v, JSON_REAL_PRECISION(17));
    char *number = strstr(text, "\"below\": ");
    assert_non_null(number);
    number += strlen("\"below\": ");
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        AUTO_FREE char *stored = xasprintf("%.*s%s%s", (int)(number - text), text, written[i],
                                           number + strcspn(number, ",}"));
        struct arena a;
        struct spec *back;
        struct err err = ERR_INIT;
        AUTO_JSON json_t *read = json_loads(stored, 0, NULL);
        assert_non_null(read);
        arena_init(&a, SPEC_ARENA_BYTES);
        assert_true(spec_from_json(read, &a, &back, &err));
        assert_true(back->stages[0]->gate.below == 1e15);
        arena_done(&a);
    }
    parsed_free(p);
}

/* "train-1 train-8!": those with a gate have a mark. */
static void assert_gates(const char *tail, const char *want)
{
    struct parsed *p = parse_gate(tail);
    AUTO_BUF struct buf b = BUF_INIT(1024);
    show(&p->faults);
    assert_true(p->good);
    for (int i = 0; i < p->spec->stages_n; i++) {
        buf_addf(&b, "%s%s%s", i > 0 ? " " : "", p->spec->stages[i]->name,
                 p->spec->stages[i]->gate.metric != NULL ? "!" : "");
    }
    assert_string_equal(buf_cstr(&b), want);
    parsed_free(p);
}

static void test_spec_gate__of_names_rows_of_the_matrix(void **state)
{
    (void)state;
    assert_gates("    gate: none\n", "train");
    assert_gates("    matrix: {instance_count: [1, 8]}\n    gate: {metric: loss, below: 3}\n",
                 "train-1! train-8!");
    assert_gates("    matrix: {instance_count: [1, 8]}\n"
                 "    gate: {metric: loss, below: 3, of: {instance_count: 8}}\n",
                 "train-1 train-8!");
    assert_gates("    matrix: {include: [{hyperparameters: {lr: 1}, name: a}, {name: b}]}\n"
                 "    gate: {metric: loss, below: 3, of: {hyperparameters.lr: 1}}\n",
                 "train-a! train-b");
    /* a stage that extends it has its gate too, unless it says otherwise */
    assert_gates("    gate: {metric: loss, below: 3}\n"
                 "  - {name: b, extends: train}\n  - {name: c, extends: train, gate: none}\n",
                 "train! b! c");
}

static void test_spec_gate__one_mistake_one_fault(void **state)
{
    (void)state;
    static const struct {
        const char *gate, *code;
        int column;
        const char *word;
    } rows[] = {
        {"3", "type", 11, "a map"},
        {"{metric: loss}", "required", 11, "without a bound"},
        {"{below: 3}", "required", 11, "metric"},
        {"{metric: lss, below: 3}", "unknown_metric", 20, "did you mean 'loss'?"},
        {"{metric: step, below: 3}", "unknown_metric", 20, "one of: loss"},
        {"{metric: loss, below: low}", "type", 33, "number"},
        {"{metric: loss, below: .nan}", "range", 33, "not-a-number"},
        {"{metric: loss, below: 1e200}", "range", 33, "1e15"},
        {"{metric: loss, above: -1.1e15}", "range", 33, "-1.1e15 is not within"},
        {"{metric: loss, below: 1e30}", "range", 33, "1e15"},
        {"{metric: loss, above: [1]}", "type", 33, "above: 0.75"},
        {"{metric: loss, above: 3, below: 3}", "range", 33, "at once"},
        {"{metric: loss, below: 3, else: fail}", "value", 42, "hold"},
        {"{metric: loss, bellow: 3, below: 3}", "unknown_key", 26, "bellow"},
        {"{metric: loss, below: 3, of: 8}", "type", 40, "a map"},
        {"{metric: loss, below: 3, of: {instance_count: 4}}", "no_row", 40, "no row"},
        {"{metric: loss, below: 3, of: {instance_count: 4}}", "no_row", 40, "leave it out"},
        {"{metric: loss, below: 3, of: {instance_count: 4}}\n    matrix: {instance_count: [1, 8]}",
         "no_row", 40, "one of its rows"},
        {"{below: 3, of: {instance_count: 4}}", "required", 11, "metric"}, /* one fault */
        {"{metric: loss, below: 3, of: {lr: 4}}", "no_row", 40, "no row"},
        {"{metric: loss, below: 3, of: {hyperparameters.lr: 4}}", "no_row", 40, "no row"},
    };
    int bad = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *tail = xasprintf("    gate: %s\n", rows[i].gate);
        struct parsed *p = parse_gate(tail);
        const struct fault *f = &p->faults.at[0];
        if (p->faults.n != 1 || strcmp(f->code, rows[i].code) != 0 || f->pos.line != 7 ||
            f->pos.column != rows[i].column || f->hint[0] == '\0' ||
            (strstr(f->message, rows[i].word) == NULL && strstr(f->hint, rows[i].word) == NULL)) {
            (void)printf("# wanted one %s in column %d with '%s' for %s", rows[i].code,
                         rows[i].column, rows[i].word, tail);
            show(&p->faults);
            bad++;
        }
        parsed_free(p);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_gate__it_is_stored_and_reads_back),
        cmocka_unit_test(test_spec_gate__the_largest_bound_comes_back_from_jsonb),
        cmocka_unit_test(test_spec_gate__of_names_rows_of_the_matrix),
        cmocka_unit_test(test_spec_gate__one_mistake_one_fault),
    };
    return cmocka_run_group_tests_name("spec_gate", tests, NULL, NULL);
}
