/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option_help.c - option tables as text for --help and as Markdown for the reference page.
 *
 * Both are made of the same two pieces: the flag as it is typed, and its sentence with bounds and
 * default. Help aligns the sentences in one column; flags wider than that get a line of their own.
 */
#include <string.h>

#include "base/option_internal.h"

enum { COLUMN_MAX = 34, WIDTH = 100 };

static void flag_text(const KnOption *option, KnBuf *out)
{
    if (option->letter)
        kn_buf_printf(out, "-%c, ", option->letter);
    kn_buf_printf(out, "--%s", option->name);
    if (option->type != KN_OPT_FLAG)
        kn_buf_printf(out, " %s", option->value);
}

/* What a reader needs beyond the sentence: bounds, repeatability, default. */
static void notes_text(const KnOption *option, KnBuf *out)
{
    const char *glue = " (";
    if (option->type == KN_OPT_INT && option->max == INT64_MAX) {
        kn_buf_printf(out, "%sat least %lld", glue, (long long)option->min);
        glue = "; ";
    } else if (option->type == KN_OPT_INT && (option->min || option->max)) {
        kn_buf_printf(out, "%s%lld to %lld", glue, (long long)option->min, (long long)option->max);
        glue = "; ";
    }
    if (kn_option_is_list(option)) {
        kn_buf_printf(out, "%smay be repeated", glue);
        glue = "; ";
    }
    if (option->dflt) {
        kn_buf_printf(out, "%sdefault %s", glue, option->dflt);
        glue = "; ";
    }
    if (glue[0] == ';')
        kn_buf_char(out, ')');
}

/* Words of text from `column` on, which the cursor has reached; no line passes WIDTH. */
static void wrapped_text(KnBuf *out, const char *text, size_t column)
{
    size_t at = column;
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, " ");
        if (at > column && at + 1 + len > WIDTH) {
            kn_buf_printf(out, "\n%*s", (int)column, "");
            at = column;
        } else if (at > column) {
            kn_buf_char(out, ' ');
            ++at;
        }
        kn_buf_append(out, p, len);
        at += len;
        p += len;
        p += strspn(p, " ");
    }
    kn_buf_char(out, '\n');
}

static size_t help_column(const KnOptSpec *spec)
{
    size_t widest = 0;
    KnOptionRow row;
    for (size_t i = 0; kn_option_row_at(spec, i, &row); ++i) {
        KN_BUF_AUTO flag;
        kn_buf_init(&flag, 1024);
        flag_text(row.option, &flag);
        size_t width = flag.len + 4; /* two blanks before, two behind */
        if (width > widest && width <= COLUMN_MAX)
            widest = width;
    }
    return widest ? widest : COLUMN_MAX;
}

static void help_row(const KnOption *option, size_t column, KnBuf *out)
{
    KN_BUF_AUTO flag, text;
    kn_buf_init(&flag, 1024);
    kn_buf_init(&text, 4096);
    flag_text(option, &flag);
    kn_buf_text(&text, option->doc);
    notes_text(option, &text);
    kn_buf_printf(out, "  %s", flag.data);
    if (flag.len + 4 > column)
        kn_buf_printf(out, "\n%*s", (int)column, "");
    else
        kn_buf_printf(out, "%*s", (int)(column - flag.len - 2), "");
    wrapped_text(out, text.data, column);
}

void kn_options_help(const KnOptSpec *spec, KnBuf *out)
{
    size_t column = help_column(spec);
    for (size_t g = 0; g < spec->n_groups; ++g) {
        const KnOptGroup *group = &spec->groups[g];
        kn_buf_printf(out, "%s%s:\n", g ? "\n" : "", group->title);
        for (size_t i = 0; i < group->n_options; ++i)
            help_row(&group->options[i], column, out);
    }
}

static void cell_text(KnBuf *out, const char *text)
{
    for (const char *p = text; *p; ++p) {
        if (*p == '|')
            kn_buf_char(out, '\\');
        kn_buf_char(out, *p);
    }
}

void kn_options_markdown(const KnOptSpec *spec, KnBuf *out)
{
    for (size_t g = 0; g < spec->n_groups; ++g) {
        const KnOptGroup *group = &spec->groups[g];
        kn_buf_printf(out, "%s### %s\n\n| option | meaning |\n| --- | --- |\n", g ? "\n" : "",
                      group->title);
        for (size_t i = 0; i < group->n_options; ++i) {
            KN_BUF_AUTO flag, text;
            kn_buf_init(&flag, 1024);
            kn_buf_init(&text, 4096);
            flag_text(&group->options[i], &flag);
            kn_buf_text(&text, group->options[i].doc);
            notes_text(&group->options[i], &text);
            kn_buf_text(out, "| `");
            cell_text(out, flag.data);
            kn_buf_text(out, "` | ");
            cell_text(out, text.data);
            kn_buf_text(out, " |\n");
        }
    }
}
