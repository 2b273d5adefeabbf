/* Runs a fuzzer over files given as arguments, without libFuzzer: for `make test` under ASan. */
#include "common/cleanup.h"
#include "fuzz.h"

#define INPUT_MAX ((size_t)8 << 20)

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) {
        AUTO_FILE FILE *f = fopen(argv[i], "rb");
        AUTO_BUF struct buf in = BUF_INIT(INPUT_MAX);
        if (f == NULL || !buf_add_file(&in, f)) {
            perror(argv[i]);
            return 1;
        }
        /* Exactly as many bytes as there are, so that ASan sees a read past them. */
        uint8_t *exact = xmalloc(in.n);
        memcpy(exact, buf_cstr(&in), in.n);
        (void)LLVMFuzzerTestOneInput(exact, in.n);
        free(exact);
        n++;
    }
    (void)printf("%d inputs\n", n);
    return 0;
}
