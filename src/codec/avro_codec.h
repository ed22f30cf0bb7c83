/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * avro_codec.h - the block compressions of Avro container files (internal to codec/).
 *
 * null, deflate (raw, RFC 1951), snappy (one raw block, then CRC-32 of the plain bytes, big
 * endian), zstandard (frames). One KnAvroCoder serves one file: the libraries' states are kept
 * between blocks. One thread.
 */
#include "codec/avro.h"

typedef struct KnAvroCoder KnAvroCoder;

KnAvroCoder *kn_avro_coder_new(KnAvroCodec codec);
KnAvroCoder *kn_avro_coder_free(KnAvroCoder *coder); /* accepts NULL, returns NULL */
/** The value of "avro.codec" for a codec. */
const char *kn_avro_codec_name(KnAvroCodec codec);
/** KN_E_UNSUPPORTED names a codec that Avro has and we do not. */
KN_NODISCARD KnCode kn_avro_codec_find(KnStr name, KnAvroCodec *ret, KnErr *err);
/** out is emptied first; more than its maximum is KN_E_CORRUPT. */
KN_NODISCARD KnCode kn_avro_decode_block(KnAvroCoder *coder, KnStr in, KnBuf *out, KnErr *err);
/** Appends to out. */
KN_NODISCARD KnCode kn_avro_encode_block(KnAvroCoder *coder, KnStr in, KnBuf *out, KnErr *err);
