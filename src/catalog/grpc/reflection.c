/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reflection.c - grpc.reflection.v1.ServerReflection: which services there are, and the files that
 * describe them. It is what grpcurl needs to make messages of JSON.
 *
 * The same code answers for grpc.reflection.v1alpha, whose messages are the same. The contracts are
 * no secret: no token is asked for.
 */
#include "catalog/grpc/reflection.h"

#include "catalog/grpc/front_internal.h"

/* ---- what of the messages is looked at ---- */

typedef struct Request {
    const char *host, *filename, *symbol, *type;
    KnStr extension; /* ptr NULL: not asked for */
} Request;

typedef struct Named {
    const char *name;
} Named;

typedef struct Failure {
    int64_t code;
    const char *message;
} Failure;

typedef struct OneFile {
    KnStr bytes;
} OneFile;

typedef struct Services {
    KnPbMessages items; /* Named */
} Services;

typedef struct Response {
    const char *host;
    KnStr request;
    OneFile file;
    Services services;
    Failure failure;
} Response;

typedef struct File {
    const char *package;
    KnPbMessages messages, enums, services; /* Named */
} File;

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MESSAGE(type, symbol, text, fields)                                                        \
    static const KnPbMessage symbol = {text, sizeof(type), fields, COUNT(fields)}

static const KnPbField request_fields[] = {
    {"host", 1, KN_PB_TEXT, offsetof(Request, host), NULL},
    {"file_by_filename", 3, KN_PB_TEXT, offsetof(Request, filename), NULL},
    {"file_containing_symbol", 4, KN_PB_TEXT, offsetof(Request, symbol), NULL},
    {"file_containing_extension", 5, KN_PB_BYTES, offsetof(Request, extension), NULL},
    {"all_extension_numbers_of_type", 6, KN_PB_TEXT, offsetof(Request, type), NULL},
};
MESSAGE(Request, request_message, "ServerReflectionRequest", request_fields);

static const KnPbField named_fields[] = {{"name", 1, KN_PB_TEXT, offsetof(Named, name), NULL}};
MESSAGE(Named, named_message, "ServiceResponse", named_fields);

static const KnPbField one_file_fields[] = {
    {"file_descriptor_proto", 1, KN_PB_BYTES, offsetof(OneFile, bytes), NULL}};
MESSAGE(OneFile, one_file_message, "FileDescriptorResponse", one_file_fields);

static const KnPbField services_fields[] = {
    {"service", 1, KN_PB_MESSAGES, offsetof(Services, items), &named_message}};
MESSAGE(Services, services_message, "ListServiceResponse", services_fields);

static const KnPbField failure_fields[] = {
    {"error_code", 1, KN_PB_INT64, offsetof(Failure, code), NULL},
    {"error_message", 2, KN_PB_TEXT, offsetof(Failure, message), NULL}};
MESSAGE(Failure, failure_message, "ErrorResponse", failure_fields);

static const KnPbField response_fields[] = {
    {"valid_host", 1, KN_PB_TEXT, offsetof(Response, host), NULL},
    {"original_request", 2, KN_PB_BYTES, offsetof(Response, request), NULL},
    {"file_descriptor_response", 4, KN_PB_MESSAGE, offsetof(Response, file), &one_file_message},
    {"list_services_response", 6, KN_PB_MESSAGE, offsetof(Response, services), &services_message},
    {"error_response", 7, KN_PB_MESSAGE, offsetof(Response, failure), &failure_message}};
MESSAGE(Response, response_message, "ServerReflectionResponse", response_fields);

static const KnPbField file_fields[] = {
    {"package", 2, KN_PB_TEXT, offsetof(File, package), NULL},
    {"message_type", 4, KN_PB_MESSAGES, offsetof(File, messages), &named_message},
    {"enum_type", 5, KN_PB_MESSAGES, offsetof(File, enums), &named_message},
    {"service", 6, KN_PB_MESSAGES, offsetof(File, services), &named_message}};
MESSAGE(File, file_message, "FileDescriptorProto", file_fields);

/* ---- the files ---- */

static bool has_name(const KnPbMessages *named, KnStr name)
{
    for (size_t i = 0; i < named->n; i++)
        if (kn_str_eq(kn_str(((const Named *)named->items)[i].name), name))
            return true;
    return false;
}

/* "package.Name", and whatever is within it. */
static bool declares(const File *file, const char *symbol)
{
    size_t len = strlen(file->package);
    if (strncmp(symbol, file->package, len) != 0 || symbol[len] != '.')
        return false;
    KnStr name = {symbol + len + 1, strcspn(symbol + len + 1, ".")};
    return has_name(&file->messages, name) || has_name(&file->enums, name) ||
           has_name(&file->services, name);
}

static KnCode read_file(size_t i, KnArena *arena, File *ret, KnErr *err)
{
    return kn_pb_decode(&file_message, kn_grpc_files[i].bytes, arena, ret, err);
}

static KnCode list_services(KnArena *arena, Services *ret, KnErr *err)
{
    enum { MOST = 16 };
    Named *names = kn_arena_alloc(arena, MOST * sizeof(*names));
    size_t n = 0;
    for (size_t i = 0; i < kn_grpc_n_files; i++) {
        File file;
        KN_TRY(read_file(i, arena, &file, err));
        const Named *services = file.services.items;
        for (size_t k = 0; k < file.services.n && n < MOST; k++)
            names[n++].name = kn_arena_printf(arena, "%s.%s", file.package, services[k].name);
    }
    ret->items = (KnPbMessages){names, n};
    return KN_OK;
}

/* By its name, or by what it declares. */
static KnCode find_file(const Request *req, KnArena *arena, Response *rsp, KnErr *err)
{
    for (size_t i = 0; i < kn_grpc_n_files; i++) {
        File file;
        KN_TRY(read_file(i, arena, &file, err));
        if (!strcmp(kn_grpc_files[i].name, req->filename) || declares(&file, req->symbol)) {
            rsp->file.bytes = kn_grpc_files[i].bytes;
            return KN_OK;
        }
    }
    rsp->failure = (Failure){KN_GRPC_NOT_FOUND,
                             kn_arena_printf(arena, "there is no '%.200s' here",
                                             req->filename[0] ? req->filename : req->symbol)};
    return KN_OK;
}

static KnCode answer(const Request *req, KnArena *arena, Response *rsp, KnErr *err)
{
    if (req->filename[0] || req->symbol[0])
        return find_file(req, arena, rsp, err);
    if (!req->extension.ptr && !req->type[0])
        return list_services(arena, &rsp->services, err);
    rsp->failure = (Failure){KN_GRPC_NOT_FOUND, "nothing here has extensions"};
    return KN_OK;
}

int kn_grpc_reflect(void *self, KnGrpcCall *call, KnBuf *out, KnErr *err)
{
    Request req;
    (void)self;
    if (kn_pb_decode(&request_message, call->message, call->arena, &req, err) != KN_OK)
        return KN_GRPC_INVALID_ARGUMENT;
    Response rsp = {.host = req.host, .request = call->message};
    if (answer(&req, call->arena, &rsp, err) != KN_OK)
        return KN_GRPC_INTERNAL;
    kn_pb_encode(&response_message, &rsp, out);
    return KN_GRPC_OK;
}
