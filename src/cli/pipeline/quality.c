/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quality.c - see quality.h. The rows are written by a pipeline of one flow, so that any format and
 * table that a sink can be will do, and so that a reader sees the old rows or the old and the new.
 */
#include "cli/pipeline/quality.h"

#include <inttypes.h>

#include "base/path.h"
#include "engine/engine.h"

void kn_quality_done(KnQuality *quality)
{
    kn_vec_done(&quality->rows);
}

static const char *kept(KnQuality *quality, const char *text)
{
    return text ? kn_arena_strdup(quality->arena, text) : NULL;
}

void kn_quality_event(KnQuality *quality, const KnRunEvent *event)
{
    if (!event->metrics || !event->metrics->expectation)
        return;
    KnQualityRow row = {event->timestamp_ms, kept(quality, event->run),
                        kept(quality, event->element), *event->metrics};
    row.metrics.expectation = kept(quality, row.metrics.expectation);
    row.metrics.action = kept(quality, row.metrics.action);
    *kn_vec_push(&quality->rows) = row;
}

static void add_text(KnBuf *sql, const char *text)
{
    kn_sql_text(sql, kn_str(text ? text : ""));
    kn_buf_text(sql, ", ");
}

static const char *outcome_name(KnCode outcome)
{
    if (outcome == KN_OK)
        return "completed";
    return outcome == KN_E_CANCELLED ? "cancelled" : "failed";
}

static void add_row(const KnQualityRow *row, const KnQualityTarget *target, KnBuf *sql)
{
    kn_buf_text(sql, "(");
    add_text(sql, row->run);
    add_text(sql, target->pipeline);
    add_text(sql, outcome_name(target->outcome));
    kn_buf_printf(sql, "make_timestamp(%" PRId64 "), ", row->timestamp_ms * 1000);
    add_text(sql, row->dataset);
    add_text(sql, row->metrics.expectation);
    add_text(sql, row->metrics.action);
    kn_buf_printf(sql, "%" PRId64 "::BIGINT, %" PRId64 "::BIGINT, %" PRId64 "::BIGINT)",
                  row->metrics.rows, row->metrics.violations, row->metrics.unknown);
}

static bool is_file(const char *path)
{
    static const char *const endings[] = {".parquet", ".csv", ".json", ".jsonl", ".ndjson"};
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        if (kn_str_ends_with(kn_str(path), kn_str(endings[i])))
            return true;
    return false;
}

KnCode kn_quality_write(const KnQuality *quality, const KnQualityTarget *target,
                        const KnRunOptions *opts, KnErr *err)
{
    KN_BUF_AUTO sql = {.max = 64 << 20};
    if (!quality->rows.len)
        return KN_OK;
    kn_buf_text(&sql, "SELECT * FROM (VALUES ");
    kn_vec_foreach (&quality->rows, row) {
        kn_buf_text(&sql, row == quality->rows.items ? "" : ", ");
        add_row(row, target, &sql);
    }
    kn_buf_text(&sql, ") AS q(run, pipeline, outcome, checked_at, dataset, expectation, action, "
                      "rows, violations, unknown)");
    KN_TRY(kn_buf_check(&sql, err));
    const KnPipeline pipeline = {
        .name = "quality",
        .datasets = {KNUT_LIST(KnutDataset, {.name = "quality",
                                             .output_type = KNUT_OUTPUT_SINK,
                                             .format = is_file(target->path) ? NULL : "iceberg",
                                             .path = target->path})},
        .flows = {KNUT_LIST(KnutFlow, {.name = "quality", .target = "quality", .query = sql.data})},
    };
    const KnRunOptions plain = {.engine = opts->engine, .s3 = opts->s3, .tables = opts->tables};
    return kn_err_wrap(err, kn_backend_native.run(&pipeline, &plain, err), "--quality %s",
                       target->path);
}
