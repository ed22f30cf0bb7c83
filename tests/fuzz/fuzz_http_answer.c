/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_http_answer.c - any bytes as an HTTP answer: what is whole takes up no more than there is.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "net/http_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KnStr bytes = {(const char *)data, size};
    KnHttpAnswer answer;
    KN_BUF_AUTO out;
    kn_buf_init(&out, (size_t)8 << 20);
    for (int ended = 0; ended < 2; ++ended) {
        if (kn_http_answer_parse(bytes, ended, &answer, NULL) != KN_OK || !answer.whole)
            continue;
        if (answer.length > size || answer.status < 100 || answer.status > 599)
            abort();
        KN_IGNORE(kn_http_answer_body(&answer, &out, NULL));
        if (out.len > size)
            abort();
        kn_buf_reset(&out);
    }
    return 0;
}
