/* Aim: a heap gives its elements in order, whatever was put in, moved or taken out, and tells each
 * where it is. Method: random numbers compared with a sorted copy. */
#include "common/heap.h"
#include "common/rng.h"
#include "tests/unit/unit.h"
#include <stdlib.h>

struct item {
    int key;
    size_t at;
};
static bool item_before(const int *compared, const struct item *a, const struct item *b)
{
    assert_non_null(compared);
    return a->key < b->key;
}
static void item_put(struct item **at, size_t i, struct item *it)
{
    at[i] = it;
    it->at = i;
}
#define ITEM_BEFORE(ctx, a, b)  item_before(ctx, *(a), *(b))
#define ITEM_PUT(ctx, at, i, v) item_put(at, i, v)
HEAP_DEFINE(items, struct item *, const int *, ITEM_BEFORE, ITEM_PUT);

#define INT_BEFORE(ctx, a, b) (*(a) < *(b))
HEAP_DEFINE(ints, int, void *, INT_BEFORE, HEAP_PUT);

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void test_heap__gives_in_order(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 1);
    for (int n = 0; n < 70; n++) {
        int heap[70] = {0}, sorted[70] = {0};
        for (int i = 0; i < n; i++) {
            heap[i] = sorted[i] = (int)rng_below(&r, 20);
            ints_up(NULL, heap, (size_t)i);
        }
        qsort(sorted, (size_t)n, sizeof *sorted, by_value);
        for (int i = 0; i < n; i++) {
            assert_int_equal(heap[0], sorted[i]);
            heap[0] = heap[n - 1 - i];
            ints_down(NULL, heap, (size_t)(n - 1 - i), 0);
        }
    }
}

static void test_heap__knows_where_each_is(void **state)
{
    (void)state;
    struct rng r;
    struct item items[40];
    struct item *heap[40];
    const int any = 1;
    rng_seed(&r, 2);
    for (size_t i = 0; i < 40; i++) {
        items[i].key = (int)rng_below(&r, 1000);
        item_put(heap, i, &items[i]);
        items_up(&any, heap, i);
    }
    for (int turn = 0; turn < 1000; turn++) { /* one is moved to another place in the order */
        struct item *it = &items[rng_below(&r, 40)];
        it->key = (int)rng_below(&r, 1000);
        items_up(&any, heap, it->at);
        items_down(&any, heap, 40, it->at);
        for (size_t i = 0; i < 40; i++) {
            assert_ptr_equal(heap[items[i].at], &items[i]);
            assert_true(i == 0 || heap[(i - 1) / 2]->key <= heap[i]->key);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heap__gives_in_order),
        cmocka_unit_test(test_heap__knows_where_each_is),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
