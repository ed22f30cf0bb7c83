/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "catalog/server/auth_internal.h"

#define HASH_OF_X "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

static KnAuthSet *parsed(const char *text)
{
    KnAuthSet *set = NULL;
    KnErr err = {0};
    assert_int_equal(kn_auth_set_parse(kn_str(text), "tokens", &set, &err), KN_OK);
    return set;
}

static KnNamespace ns(const char *const *levels)
{
    size_t n = 0;
    while (levels[n])
        n++;
    return (KnNamespace){levels, n};
}
#define NS(...) ns((const char *const[]){__VA_ARGS__, NULL})

static void a_grant_holds_for_the_namespace_and_what_is_below(void **state)
{
    (void)state;
    KnAuthSet *set = parsed("# who may what\n\n"
                            "etl sha256:" HASH_OF_X " write:sales read:* admin:\"a.b\".c\n");
    const KnPrincipal *etl = &set->items[0];
    assert_int_equal(set->n, 1);
    KnNamespace sales = NS("sales"), deep = NS("sales", "eu", "x"), other = NS("salesx"),
                dotted = NS("a.b", "c", "d"), apart = NS("a", "b", "c");
    assert_int_equal(kn_principal_right(etl, &sales), KN_RIGHT_WRITE);
    assert_int_equal(kn_principal_right(etl, &deep), KN_RIGHT_WRITE);
    assert_int_equal(kn_principal_right(etl, &other), KN_RIGHT_READ);
    assert_int_equal(kn_principal_right(etl, &dotted), KN_RIGHT_ADMIN);
    assert_int_equal(kn_principal_right(etl, &apart), KN_RIGHT_READ);
    assert_int_equal(kn_principal_right(etl, NULL), KN_RIGHT_READ);
    (void)kn_arena_free(set->arena);
}

static void a_namespace_above_a_granted_one_is_seen_and_not_read(void **state)
{
    (void)state;
    KnAuthSet *set = parsed("a sha256:" HASH_OF_X " read:x.y");
    const KnPrincipal *who = &set->items[0];
    KnNamespace above = NS("x"), itself = NS("x", "y"), beside = NS("x", "z"), root = {0};
    assert_true(kn_principal_sees(who, &root));
    assert_true(kn_principal_sees(who, &above));
    assert_true(kn_principal_sees(who, &itself));
    assert_false(kn_principal_sees(who, &beside));
    assert_int_equal(kn_principal_right(who, &above), KN_RIGHT_NONE);
    (void)kn_arena_free(set->arena);
}

static void a_line_that_is_wrong_is_named(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "a",
        "a sha256:12 read:*",
        "a md5:" HASH_OF_X " read:*",
        "a sha256:" HASH_OF_X " own:*",
        "a sha256:" HASH_OF_X " read:",
        "a sha256:" HASH_OF_X " read:a..b",
        "a sha256:" HASH_OF_X " read:a.",
        "a sha256:" HASH_OF_X " read:\"a",
        "a:b sha256:" HASH_OF_X " read:*",
        "a sha256:" HASH_OF_X "0 read:*",
        "\xff sha256:" HASH_OF_X " read:*",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        KnAuthSet *set = NULL;
        KnErr err = {0};
        char text[300];
        (void)snprintf(text, sizeof(text), "ok sha256:" HASH_OF_X " read:*\n%s\n", bad[i]);
        assert_int_equal(kn_auth_set_parse(kn_str(text), "tokens", &set, &err), KN_E_INVAL);
        assert_non_null(strstr(err.msg, "tokens, line 2"));
    }
}

static void write_file(const char *file, const char *text)
{
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(file, 0600), 0);
}

static void tokens_are_known_by_their_hash_and_signed_ones_by_their_signature(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    char file[] = "/tmp/kn-tokens-XXXXXX";
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    KnErr err = {0};
    const char *grant = "write:s";
    KnTokenLine made_line = {0};
    KnOptList grants = {&grant, 1};
    assert_int_equal(kn_auth_make_line(arena, "etl", &grants, &made_line, &err), KN_OK);
    const char *token = made_line.token, *line = made_line.line;
    assert_null(strstr(line, token));
    write_file(file, line);
    KnAuth *auth = NULL;
    assert_int_equal(kn_auth_open(&(KnAuthOptions){.token_file = file}, &auth, &err), KN_OK);
    const KnPrincipal *who = NULL;
    const char *header = kn_arena_printf(arena, "Bearer %s", token);
    assert_int_equal(kn_auth_check(auth, header, &who, &err), KN_OK);
    assert_string_equal(kn_principal_name(who), "etl");
    assert_int_equal(kn_auth_check(auth, NULL, &who, &err), KN_E_REFUSED);
    assert_int_equal(kn_auth_check(auth, token, &who, &err), KN_E_REFUSED);
    assert_int_equal(kn_auth_check(auth, "Bearer ", &who, &err), KN_E_REFUSED);
    assert_int_equal(kn_auth_secret(auth, kn_str("other"), kn_str(token), &who, &err),
                     KN_E_REFUSED);
    assert_int_equal(kn_auth_secret(auth, kn_str(""), kn_str(token), &who, &err), KN_OK);
    int64_t seconds = 0;
    char *made = kn_arena_strdup(arena, kn_auth_issue(auth, arena, who, &seconds));
    assert_int_equal(seconds, 3600);
    assert_int_equal(kn_auth_token(auth, kn_str(made), &who, &err), KN_OK);
    for (size_t i = 0; i < strlen(made); i++) {
        made[i] ^= 1;
        assert_int_equal(kn_auth_token(auth, kn_str(made), &who, &err), KN_E_REFUSED);
        made[i] ^= 1;
    }
    (void)kn_auth_close(auth);
    assert_int_equal(chmod(file, 0666), 0);
    assert_int_equal(kn_auth_open(&(KnAuthOptions){.token_file = file}, &auth, &err), KN_E_REFUSED);
    assert_int_equal(unlink(file), 0);
}

static void an_expired_signed_token_is_refused(void **state)
{
    (void)state;
    KN_ARENA_AUTO arena = kn_arena_new(0);
    char file[] = "/tmp/kn-tokens-XXXXXX";
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    write_file(file, "a sha256:" HASH_OF_X " read:*\n");
    KnErr err = {0};
    KnAuth *auth = NULL;
    KnAuthOptions opts = {.token_file = file, .lifetime_s = -1};
    assert_int_equal(kn_auth_open(&opts, &auth, &err), KN_OK);
    const KnPrincipal *who = NULL;
    int64_t seconds = 0;
    assert_int_equal(kn_auth_token(auth, kn_str("x"), &who, &err), KN_OK);
    const char *made = kn_auth_issue(auth, arena, who, &seconds);
    assert_int_equal(kn_auth_token(auth, kn_str(made), &who, &err), KN_E_REFUSED);
    (void)kn_auth_close(auth);
    assert_int_equal(unlink(file), 0);
}

static void without_a_file_everybody_may_do_everything(void **state)
{
    (void)state;
    KnErr err = {0};
    KnAuth *auth = NULL;
    const KnPrincipal *who = NULL;
    assert_int_equal(kn_auth_open(&(KnAuthOptions){0}, &auth, &err), KN_OK);
    assert_false(kn_auth_is_on(auth));
    assert_int_equal(kn_auth_check(auth, NULL, &who, &err), KN_OK);
    assert_int_equal(kn_principal_right(who, NULL), KN_RIGHT_ADMIN);
    (void)kn_auth_close(auth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grant_holds_for_the_namespace_and_what_is_below),
        cmocka_unit_test(a_namespace_above_a_granted_one_is_seen_and_not_read),
        cmocka_unit_test(a_line_that_is_wrong_is_named),
        cmocka_unit_test(tokens_are_known_by_their_hash_and_signed_ones_by_their_signature),
        cmocka_unit_test(an_expired_signed_token_is_refused),
        cmocka_unit_test(without_a_file_everybody_may_do_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
