/* SPDX-License-Identifier: Apache-2.0 */
/* lineage.c - see lineage.h. */
#include "service/lineage.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/json.h"

#define PRODUCER   "urn:knut"
#define SCHEMA     "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
#define FACET(n)   "https://openlineage.io/spec/facets/" n
#define FACET_HEAD "\"_producer\":\"" PRODUCER "\",\"_schemaURL\":"

static void write_id(KnBuf *out, const char *name, int64_t id)
{
    if (id < 0)
        kn_buf_printf(out, "\"%s\":null", name);
    else /* as text: snapshot ids do not fit a double */
        kn_buf_printf(out, "\"%s\":\"%" PRId64 "\"", name, id);
}

static void write_dataset(KnBuf *out, const char *namespace, const char *name)
{
    kn_json_put_text(out, "namespace", namespace);
    kn_buf_char(out, ',');
    kn_json_put_text(out, "name", name);
}

static void write_run(KnBuf *out, const KnLineageRun *run, const char *message)
{
    kn_buf_text(out, ",\"run\":{");
    kn_json_put_text(out, "runId", run->run_id);
    kn_buf_text(out, ",\"facets\":{");
    if (message) {
        kn_buf_text(out, "\"errorMessage\":{" FACET_HEAD
                         "\"" FACET("1-0-1/ErrorMessageRunFacet.json") "\",");
        kn_json_put_text(out, "message", message);
        kn_buf_text(out, ",\"programmingLanguage\":\"C\"}");
    }
    kn_buf_text(out, "}}");
}

static void write_input(KnBuf *out, const KnLineageRun *run, const KnWindowReport *win)
{
    kn_buf_text(out, ",\"inputs\":[{");
    write_dataset(out, run->source, run->table);
    kn_buf_text(out, ",\"facets\":{");
    if (win) {
        kn_buf_text(out, "\"version\":{" FACET_HEAD
                         "\"" FACET("1-0-1/DatasetVersionDatasetFacet.json") "\",");
        kn_buf_printf(out, "\"datasetVersion\":\"%" PRId64 "\"}", win->to);
    }
    kn_buf_text(out, "}}]");
}

static void write_output(KnBuf *out, const KnLineageRun *run, const KnWindowReport *done)
{
    kn_buf_text(out, ",\"outputs\":[{");
    write_dataset(out, run->sink, run->target);
    kn_buf_text(out, ",\"facets\":{},\"outputFacets\":{");
    if (done)
        kn_buf_printf(
            out,
            "\"outputStatistics\":{" FACET_HEAD
            "\"" FACET("1-0-2/OutputStatisticsOutputDatasetFacet.json") "\",\"rowCount\":%" PRId64
                                                                        ",\"size\":%" PRId64 "}",
            done->upserts + done->deletes, done->bytes);
    kn_buf_text(out, "}}]");
}

void kn_lineage_write(KnBuf *out, KnLineageEvent event, const KnLineageRun *run,
                      const KnWindowReport *win, const char *message)
{
    static const char *const types[] = {"START", "COMPLETE", "FAIL"};
    char when[32];
    kn_buf_printf(out,
                  "{\"eventType\":\"%s\",\"eventTime\":\"%s\",\"producer\":\"" PRODUCER
                  "\",\"schemaURL\":\"" SCHEMA "\"",
                  types[event], kn_clock_format_ms(run->time_ms, when));
    write_run(out, run, event == KN_LINEAGE_FAIL ? message : NULL);
    kn_buf_text(out, ",\"job\":{");
    write_dataset(out, run->namespace, run->job);
    kn_buf_text(out, ",\"facets\":{}}");
    write_input(out, run, win);
    write_output(out, run, event == KN_LINEAGE_COMPLETE ? win : NULL);
    kn_buf_char(out, '}');
}

void kn_airflow_write(KnBuf *out, const char *prefix, const KnLineageRun *run,
                      const KnDeliveryReport *report)
{
    int64_t upserts = 0, deletes = 0;
    for (size_t i = 0; i < report->n_windows; i++) {
        upserts += report->windows[i].upserts;
        deletes += report->windows[i].deletes;
    }
    kn_buf_text(out, "{\"asset_uri\":");
    KN_BUF_AUTO uri;
    kn_buf_init(&uri, 65536);
    kn_buf_printf(&uri, "%s%s", prefix, run->table);
    kn_json_quote(out, (KnStr){uri.data, uri.len});
    kn_buf_text(out, ",\"extra\":{");
    kn_json_put_text(out, "table", run->table);
    kn_buf_char(out, ',');
    kn_json_put_text(out, "delivery", run->job);
    kn_buf_char(out, ',');
    kn_json_put_text(out, "target", run->target);
    kn_buf_printf(out,
                  ",\"rows\":%" PRId64 ",\"upserts\":%" PRId64 ",\"deletes\":%" PRId64
                  ",\"windows\":%zu,",
                  upserts + deletes, upserts, deletes, report->n_windows);
    write_id(out, "snapshot", report->to);
    kn_buf_text(out, "}}");
}
