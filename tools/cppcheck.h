/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read by cppcheck before every file: macros that it cannot parse, in words that it can.
 */
#define __typeof__(x) char *
#define json_object_foreach(object, key, value)                                                    \
    for (key = json_object_iter_key(object), value = json_object_get(object, key); key; key = 0)
#define json_array_foreach(array, index, value)                                                    \
    for (index = 0; index < json_array_size(array) && (value = json_array_get(array, index)); index++)
