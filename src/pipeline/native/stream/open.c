/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - a flow's source, target and state, and from where it goes on. */
#include <inttypes.h>
#include <string.h>

#include "base/random.h"
#include "pipeline/native/stream/stream.h"

/* A name as one part of a location. */
static void part(KnBuf *out, const char *name)
{
    for (const char *at = name; *at; at++) {
        bool plain = (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') ||
                     (*at >= 'A' && *at <= 'Z') || *at == '_' || *at == '-' ||
                     (*at == '.' && at != name);
        kn_buf_printf(out, plain ? "%c" : "%%%02X", (unsigned char)*at);
    }
}

/* Where state is kept: below what the run or the pipeline names, else beside the target. */
static KnCode location_of(const KnStreamFlow *f, const char **ret, KnErr *err)
{
    const KnNativeRun *run = f->run;
    const char *root = run->opts->state ? run->opts->state : run->pipeline->storage;
    KN_BUF_AUTO text = {.max = 1 << 16};
    if (root && strstr(root, "://"))
        kn_buf_text(&text, root);
    else if (root) {
        KN_TRY(kn_native_path(run->arena, root, &root, err));
        kn_buf_text(&text, root);
    } else if (f->sink->state_beside) {
        kn_buf_text(&text, f->sink->state_beside);
    } else {
        return kn_err_set(err, KN_E_INVAL,
                          "flow %s: where is its state to be kept? give --state, or the pipeline's "
                          "storage",
                          f->flow->name);
    }
    while (text.len > 1 && text.data[text.len - 1] == '/')
        text.len--;
    if (root) {
        kn_buf_char(&text, '/');
        part(&text, run->pipeline->name);
    }
    kn_buf_char(&text, '/');
    part(&text, f->flow->name);
    KN_TRY(kn_buf_check(&text, err));
    *ret = kn_arena_strndup(run->arena, text.data, text.len);
    return KN_OK;
}

static void start_anew(KnStreamFlow *f)
{
    f->point = (KnStreamPoint){.mark = {.epoch = -1}, .sink_epoch = -1, .watermark = INT64_MIN};
    (void)kn_random_uuid7(f->point.mark.stream);
}

static KnCode recover(KnStreamFlow *f, KnErr *err)
{
    KnStreamMark mark = {.epoch = -1};
    const char *location = NULL, *note = NULL;
    bool repeats = f->spec->output_mode == KNUT_MODE_COMPLETE;
    if (f->sink->ops->passing || kn_native_is_dry(f->run)) {
        start_anew(f);
        return KN_OK;
    }
    KN_TRY(location_of(f, &location, err));
    KN_TRY(kn_state_open(f->run, f->flow, location, &f->state, err));
    if (f->node->fresh) {
        f->fresh = true;
        start_anew(f);
        return kn_state_clear(f->state, err);
    }
    KN_TRY(f->sink->ops->mark(f->sink, &mark, err));
    KN_TRY(kn_state_recover(f->state, &mark, repeats, &f->point, &note, err));
    if (note)
        kn_native_tell(f->run, &(KnRunEvent){.element = f->node->dataset->name}, "flow `%s`: %s",
                       f->flow->name, note);
    return KN_OK;
}

static void set_watermark(KnStreamFlow *f)
{
    const KnutWatermark *mark = f->spec->watermark;
    int64_t now = kn_native_now(f->run);
    f->input = (KnWatermarkInput){.name = f->source->name, .max_time = INT64_MIN, .seen_ms = now};
    f->mark = (KnStreamWatermark){.value = f->point.watermark, .inputs = &f->input, .n = 1};
    if (!mark) {
        f->mark.n = 0;
        return;
    }
    f->input.lateness_ms = (int64_t)mark->allowed_lateness_ms;
    f->input.idle_ms = (int64_t)mark->idle_timeout_ms;
    kn_watermark_load(&f->mark, f->point.inputs, now);
}

static KnCode open_log(KnStreamFlow *f, KnErr *err)
{
    static const KnNativeColumn item = {"item", "VARCHAR"};
    if (!f->source->log)
        return KN_OK;
    f->log.name = "log";
    f->log.table = f->source->log;
    f->log.shape = (KnNativeShape){&item, 1};
    if (!f->state)
        return kn_state_make(f->run, &f->log, err);
    KN_TRY(kn_state_restore(f->state, &f->log, INT64_MIN, err));
    kn_vec_foreach (&f->log.parts, part) {
        f->log_rows += part->rows;
    }
    return KN_OK;
}

KnCode kn_stream_flow_open(KnNativeRun *run, KnNativeNode *node, const KnutFlow *flow,
                           KnStreamFlow **ret, KnErr *err)
{
    KnStreamFlow *f = kn_arena_zalloc(run->arena, sizeof(*f));
    *f = (KnStreamFlow){.run = run,
                        .node = node,
                        .flow = flow,
                        .spec = &flow->kind.streaming,
                        .at = (size_t)(flow - run->pipeline->flows.items)};
    f->endless = f->spec->trigger.tag != KNUT_TRIGGER_AVAILABLE_NOW && !run->opts->once;
    KnCode rc = kn_stream_sink_open(run, node, flow, &f->sink, err);
    if (rc == KN_OK)
        rc = recover(f, err);
    if (rc == KN_OK)
        rc = kn_stream_source_open(run, flow, &f->source, err);
    if (rc == KN_OK) {
        set_watermark(f);
        f->plan = kn_stream_plan(f);
        rc = f->state ? kn_state_check_plan(f->state, f->plan, err) : KN_OK;
    }
    if (rc == KN_OK)
        rc = open_log(f, err);
    if (rc != KN_OK) {
        (void)kn_stream_flow_close(f);
        return rc;
    }
    *ret = f;
    return KN_OK;
}

KnStreamFlow *kn_stream_flow_close(KnStreamFlow *f)
{
    if (!f)
        return NULL;
    f->source = kn_stream_source_close(f->source);
    f->sink = kn_stream_sink_close(f->sink);
    f->state = kn_state_close(f->state);
    kn_stream_point_done(&f->point);
    json_decref(f->plan);
    kn_vec_done(&f->kept.parts);
    kn_vec_done(&f->seen.parts);
    kn_vec_done(&f->log.parts);
    return NULL;
}
