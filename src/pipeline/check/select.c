/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - see select.h. One pass over the order of running goes down from what was chosen, one
 * pass back goes up. */
#include "pipeline/check/select.h"

#include <string.h>

#include "pipeline/check/checker.h"

typedef struct Choice {
    bool is, up, down; /* chosen; so is what it needs; so is what needs it */
} Choice;

static KnCode no_such(const KnGraph *graph, const char *flag, const char *word, KnErr *err)
{
    size_t hints = 1;
    const KnChecker checker = {.graph = graph, .pipeline = graph->pipeline, .hints_left = &hints};
    KN_BUF_AUTO hint = {.max = 1000};
    kn_buf_text(&hint, "");
    kn_hint_name(&checker, &hint, word);
    return kn_err_set(err, KN_E_INVAL,
                      "%s %.200s: no dataset of this name%s (NAME, +NAME with what it needs, NAME+ "
                      "with what needs it, or all)",
                      flag, word, hint.len ? hint.data : "");
}

static KnCode choose(const KnGraph *graph, const char *flag, const char *word, Choice *choices,
                     KnErr *err)
{
    size_t len = strlen(word), at = kn_graph_dataset(graph, word);
    Choice as = {.is = true};
    if (at == KN_GRAPH_NONE && strcmp(word, "all") == 0) {
        for (size_t i = 0; i < graph->pipeline->datasets.len; i++)
            choices[i].is = true;
        return KN_OK;
    }
    if (at == KN_GRAPH_NONE) {
        as.up = word[0] == '+';
        as.down = len > 1 && word[len - 1] == '+';
        const char *name = kn_arena_strndup(graph->arena, word + as.up, len - as.up - as.down);
        at = kn_graph_dataset(graph, name);
        if (at == KN_GRAPH_NONE)
            return no_such(graph, flag, name, err);
    }
    choices[at].is = true;
    choices[at].up |= as.up;
    choices[at].down |= as.down;
    return KN_OK;
}

static void go_down(const KnGraph *graph, Choice *choices)
{
    for (size_t i = 0; i < graph->order.len; i++) {
        size_t at = graph->order.items[i];
        for (size_t k = 0; choices[at].down && k < graph->after[at].len; k++) {
            Choice *next = &choices[graph->after[at].items[k]];
            next->is = next->down = true;
        }
    }
}

static void go_up(const KnGraph *graph, Choice *choices)
{
    for (size_t i = graph->order.len; i-- > 0;) {
        size_t at = graph->order.items[i];
        for (size_t k = 0; k < graph->after[at].len; k++)
            choices[at].up |= choices[graph->after[at].items[k]].up;
        choices[at].is |= choices[at].up;
    }
}

KnCode kn_graph_select(const KnGraph *graph, const char *flag, const KnutNames *words,
                       KnutNames *ret, KnErr *err)
{
    size_t n = graph->pipeline->datasets.len;
    Choice *choices = kn_arena_zalloc(graph->arena, (n + 1) * sizeof(*choices));
    const char **names = kn_arena_alloc(graph->arena, (n + 1) * sizeof(*names));
    size_t len = 0;
    for (size_t i = 0; i < words->len; i++)
        KN_TRY(choose(graph, flag, words->items[i], choices, err));
    go_down(graph, choices);
    go_up(graph, choices);
    for (size_t i = 0; i < graph->order.len; i++)
        if (choices[graph->order.items[i]].is)
            names[len++] = graph->pipeline->datasets.items[graph->order.items[i]].name;
    *ret = (KnutNames){names, len};
    return KN_OK;
}
