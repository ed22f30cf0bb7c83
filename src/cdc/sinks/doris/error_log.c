/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_log.c - the page behind an ErrorURL: why a backend did not take rows.
 *
 * A backend serves it without asking who wants it, so nobody's credentials go there; the user part
 * that an address may have is dropped, redirects are not followed, and no more than the first bytes
 * are taken. It is a help for people: when it cannot be had, that is said in its place and the
 * refusal stands as it was.
 */
#include "base/str.h"
#include "doris_internal.h"

enum { MAX_LINES = 3, MAX_LINE = 160, MAX_PAGE = 16 << 10, WAIT_MS = 10000 };

/* The first lines, "; " between them; what no line should have is a blank. */
static const char *first_lines(KnArena *arena, KnStr page)
{
    KN_BUF_AUTO out;
    kn_buf_init(&out, 4096);
    size_t width = 0;
    for (size_t i = 0, lines = 0; i < page.len && lines < MAX_LINES; ++i) {
        char c = page.ptr[i];
        if (c == '\n') {
            lines += width > 0;
            width = 0;
            continue;
        }
        if (width == 0 && out.len)
            kn_buf_text(&out, "; ");
        if (width++ < MAX_LINE)
            kn_buf_append(&out, (unsigned char)c < 0x20 || c == 0x7f ? " " : &c, 1);
    }
    return out.len ? kn_arena_strndup(arena, out.data, out.len) : "(an empty page)";
}

/* As much as there is room for; then the rest is not wanted. */
static KnCode take(void *arg, const void *bytes, size_t len, KnErr *err)
{
    KnBuf *page = arg;
    size_t left = page->max - page->len;
    kn_buf_append(page, bytes, len < left ? len : left);
    return len <= left ? KN_OK : kn_err_set(err, KN_E_CANCELLED, "the page is long");
}

static KnCode read_page(KnDoris *dor, const char *url, KnBuf *page, KnErr *err)
{
    KN_HTTP_RESPONSE_AUTO resp = {0};
    const KnHttpRequest req = {.method = "GET",
                               .url = url,
                               .on_body = take,
                               .on_body_arg = page,
                               .connect_ms = dor->set.connect_ms,
                               .total_ms = WAIT_MS};
    KnCode rc = kn_http_perform(dor->http, &req, &resp, err);
    if (page->len)
        return KN_OK;
    KN_TRY(rc);
    return resp.status == 200 ? KN_OK : kn_err_set(err, KN_E_IO, "HTTP %d", resp.status);
}

const char *kn_doris_error_log(KnDoris *dor, KnArena *arena, const char *url)
{
    KN_BUF_AUTO page;
    KnErr why = {0};
    const char *where = "";
    kn_buf_init(&page, MAX_PAGE);
    KnCode rc = kn_doris_redirect(arena, &dor->set, dor->set.fe[0], kn_str(url), &where, &why);
    if (rc == KN_OK)
        rc = read_page(dor, where, &page, &why);
    if (rc == KN_OK)
        return first_lines(arena, (KnStr){page.data ? page.data : "", page.len});
    return kn_arena_printf(arena, "%.120s (%.160s)", where, why.msg);
}
