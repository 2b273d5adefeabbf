/* The text of a quota refusal: read or not, whatever it teaches leaves the ledger in its bounds. */
#include "common/cleanup.h"
#include "core/capacity/quota_ledger.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = xstrndup((const char *)data, size);
    struct quota_ledger_refusal r;
    if (!quota_ledger_refusal_parse(text, &r)) {
        return 0;
    }
    ASSERT(r.limit >= 0 && r.used >= 0 && r.wanted >= 0);
    struct quota_ledger s = {.instance_type = "ml.c5.18xlarge",
                             .held = 4,
                             .quota = 18,
                             .operator_limit = -1,
                             .refused_limit = -1};
    struct quota_ledger_account a = QUOTA_LEDGER_ACCOUNT_UNLIMITED;
    char type[INSTANCE_TYPE_MAX + 1];
    enum market market;
    enum quota_ledger_quota named = quota_ledger_quota_named(r.quota, type, &market);
    s.market = market;
    a.total[market].held = s.held;
    enum quota_ledger_quota learned = quota_ledger_learn(&s, &a, &r, 2, 3, 1000000);
    ASSERT(learned == named || learned == QUOTA_LEDGER_QUOTA_OTHER);
    int64_t free_n = quota_ledger_free(&s, &a, 1000000);
    ASSERT(free_n >= 0 && free_n <= 14);
    /* There was no room for what was wanted: it is not tried again at once. */
    bool ours = learned == QUOTA_LEDGER_QUOTA_TYPE || learned == QUOTA_LEDGER_QUOTA_TOTAL;
    ASSERT(!ours || r.wanted < 1 || free_n < r.wanted);
    return 0;
}
