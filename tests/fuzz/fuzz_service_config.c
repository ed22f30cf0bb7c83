/* SPDX-License-Identifier: Apache-2.0 */
/* knut.yaml: whatever it holds, it is taken whole or refused in one line. */
#include <stdint.h>
#include <stdlib.h>

#include "service/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KnServiceConfig *config = NULL;
    KnErr err = {0};
    if (size > 16384)
        return 0;
    KnCode rc =
        kn_service_config_parse("knut.yaml", (KnStr){(const char *)data, size}, &config, &err);
    if (rc != KN_OK && (err.code != rc || !err.msg[0] || strchr(err.msg, '\n')))
        abort();
    if (rc == KN_OK && (!config->n || !config->deliveries[0].name))
        abort();
    config = kn_service_config_unref(config);
    return 0;
}
