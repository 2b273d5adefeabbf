/* The packing figures: mean makespan over the bound, the scheduler beside two plainer ways. */
#include "packing.h"
#include <stdio.h>

int main(void)
{
    for (size_t i = 0; i < ARRAY_LEN(packing_cases); i++) {
        const struct packing_case *c = &packing_cases[i];
        struct packing_result r = packing_run(c, PACKING_SEEDS);
        (void)printf("{\"name\":\"%s\",\"value\":%.4f,\"unit\":\"ratio\",\"n\":%d,\"note\":\"mean "
                     "of makespan / max(work / slots, longest), %d parts on %d slots; worst seed "
                     "%.3f\"}\n",
                     c->name, r.mean, PACKING_SEEDS, PACKING_PARTS, PACKING_SLOTS, r.worst);
    }
    return 0;
}
