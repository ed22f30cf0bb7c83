/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xml.c - elements of an answer by their paths, over expat.
 *
 * The path and the text of every open element share one buffer each: an element's text begins where
 * the text of its parents ends, and goes when it ends. A document type declaration ends the parse:
 * no answer has one, and entities are how XML does harm.
 */
#include "storage/s3/xml.h"

#include <expat.h>
#include <stdlib.h>

#include "base/buf.h"

enum { MAX_DEPTH = 16, MAX_TEXT = 64 << 10, MAX_PATH = 1024 };

typedef struct Parse {
    XML_Parser parser;
    KnS3XmlFn fn;
    void *arg;
    KnBuf path;
    KnBuf text;
    size_t path_at[MAX_DEPTH]; /* lengths before each open element */
    size_t text_at[MAX_DEPTH];
    int depth;
    KnErr *err;
    KnCode failed;
} Parse;

static void fail_with(Parse *p, KnCode code)
{
    if (p->failed == KN_OK)
        p->failed = code;
    (void)XML_StopParser(p->parser, XML_FALSE);
}

static void refuse(Parse *p, const char *why)
{
    if (p->failed == KN_OK)
        fail_with(p, kn_err_set(p->err, KN_E_CORRUPT, "the answer's XML at line %lu: %s",
                                (unsigned long)XML_GetCurrentLineNumber(p->parser), why));
}

static void XMLCALL on_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    (void)attributes;
    Parse *p = arg;
    if (p->depth == MAX_DEPTH) {
        refuse(p, "elements too deep");
        return;
    }
    p->path_at[p->depth] = p->path.len;
    p->text_at[p->depth] = p->text.len;
    ++p->depth;
    const char *local = strrchr(name, ':');
    kn_buf_text(&p->path, p->path.len ? "/" : "");
    kn_buf_text(&p->path, local ? local + 1 : name);
    if (p->path.failed)
        refuse(p, "names too long");
}

static void XMLCALL on_end(void *arg, const XML_Char *name)
{
    (void)name;
    Parse *p = arg;
    if (p->failed != KN_OK || p->depth == 0)
        return;
    --p->depth;
    size_t at = p->text_at[p->depth];
    KnStr text = {p->text.data + at, p->text.len - at};
    KnCode code = p->fn(p->arg, (KnStr){p->path.data, p->path.len}, text, p->err);
    p->text.len = at;
    p->path.len = p->path_at[p->depth];
    if (code != KN_OK)
        fail_with(p, code);
}

static void XMLCALL on_text(void *arg, const XML_Char *text, int len)
{
    Parse *p = arg;
    kn_buf_append(&p->text, text, (size_t)len);
    if (p->text.failed)
        refuse(p, "text too long");
}

static void XMLCALL on_doctype(void *arg, const XML_Char *name, const XML_Char *system_id,
                               const XML_Char *public_id, int has_subset)
{
    (void)name, (void)system_id, (void)public_id, (void)has_subset;
    refuse(arg, "a document type declaration");
}

KnCode kn_s3_xml_parse(KnStr bytes, KnS3XmlFn fn, void *arg, KnErr *err)
{
    Parse p = {.fn = fn, .arg = arg, .err = err};
    if (bytes.len > INT32_MAX)
        return kn_err_set(err, KN_E_CORRUPT, "the answer's XML is %zu bytes long", bytes.len);
    p.parser = XML_ParserCreate(NULL);
    if (!p.parser)
        abort();
    kn_buf_init(&p.path, MAX_PATH);
    kn_buf_init(&p.text, MAX_TEXT);
    XML_SetUserData(p.parser, &p);
    XML_SetElementHandler(p.parser, on_start, on_end);
    XML_SetCharacterDataHandler(p.parser, on_text);
    XML_SetStartDoctypeDeclHandler(p.parser, on_doctype);
    if (XML_Parse(p.parser, bytes.len ? bytes.ptr : "", (int)bytes.len, XML_TRUE) !=
            XML_STATUS_OK &&
        p.failed == KN_OK)
        refuse(&p, XML_ErrorString(XML_GetErrorCode(p.parser)));
    XML_ParserFree(p.parser);
    kn_buf_done(&p.path);
    kn_buf_done(&p.text);
    return p.failed;
}
