/* SPDX-License-Identifier: Apache-2.0 */
/* What a catalog server answers to a load: a table, its configuration, the keys that it lends. */
#include <stddef.h>
#include <stdint.h>

#include "catalog/rest/rest_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KN_JSON_AUTO doc = NULL;
    KnErr err = {0};
    if (size > 1 << 20 || kn_json_parse((const char *)data, size, &doc, &err) != KN_OK)
        return 0;
    KnRemoteTable table = {0};
    if (kn_remote_table_parse(doc, "load table s.t", &table, &err) == KN_OK) {
        (void)kn_remote_lent(table.credentials, kn_str(table.md->location));
        kn_metadata_unref(table.md);
    }
    (void)kn_remote_lent(json_object_get(doc, "storage-credentials"), KN_STR_LIT("s3://b/a/t"));
    return 0;
}
