# SPDX-License-Identifier: Apache-2.0
# The libraries that knut stands on, each as an imported target kn::<name>. Debian packages supply
# all but DuckDB, which tools/setup fetches into KN_DEPS (checked against pinned hashes).

set(KN_DEPS ${PROJECT_SOURCE_DIR}/.deps/duckdb CACHE PATH "Folder with lib/libduckdb.so, include/duckdb.h, ext/")

# kn_find(NAME HEADER LIBRARY PACKAGE): kn::NAME, or one line that says what to install.
function(kn_find name header library package)
  string(TOUPPER KN_${name} var)
  find_path(${var}_INCLUDE ${header})
  find_library(${var}_LIBRARY ${library})
  mark_as_advanced(${var}_INCLUDE ${var}_LIBRARY)
  if(NOT ${var}_INCLUDE OR NOT ${var}_LIBRARY)
    message(FATAL_ERROR "${library} (Debian package ${package}) is missing: run 'tools/setup build'")
  endif()
  add_library(kn::${name} UNKNOWN IMPORTED)
  set_target_properties(kn::${name} PROPERTIES IMPORTED_LOCATION ${${var}_LIBRARY}
                                               INTERFACE_INCLUDE_DIRECTORIES ${${var}_INCLUDE})
endfunction()

kn_find(jansson jansson.h jansson libjansson-dev)
kn_find(xxhash xxhash.h xxhash libxxhash-dev)
kn_find(zlib zlib.h z zlib1g-dev)
kn_find(zstd zstd.h zstd libzstd-dev)
kn_find(snappy snappy-c.h snappy libsnappy-dev)
kn_find(lz4 lz4.h lz4 liblz4-dev)
kn_find(uuid uuid/uuid.h uuid uuid-dev)
kn_find(sqlite3 sqlite3.h sqlite3 libsqlite3-dev)
kn_find(curl curl/curl.h curl libcurl4-openssl-dev)
kn_find(crypto openssl/evp.h crypto libssl-dev)
kn_find(ssl openssl/ssl.h ssl libssl-dev)
kn_find(expat expat.h expat libexpat1-dev)
kn_find(microhttpd microhttpd.h microhttpd libmicrohttpd-dev)
kn_find(gnutls gnutls/gnutls.h gnutls libgnutls28-dev)
kn_find(nghttp2 nghttp2/nghttp2.h nghttp2 libnghttp2-dev)
kn_find(pq postgresql/libpq-fe.h pq libpq-dev)
kn_find(yaml yaml.h yaml libyaml-dev)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
add_library(kn::threads ALIAS Threads::Threads)
add_library(kn::m INTERFACE IMPORTED)
set_target_properties(kn::m PROPERTIES INTERFACE_LINK_LIBRARIES m)

if(NOT EXISTS ${KN_DEPS}/lib/libduckdb.so OR NOT EXISTS ${KN_DEPS}/include/duckdb.h)
  message(FATAL_ERROR "libduckdb.so or duckdb.h is missing in ${KN_DEPS}: run 'tools/setup build'")
endif()
add_library(kn::duckdb SHARED IMPORTED)
set_target_properties(kn::duckdb PROPERTIES
  IMPORTED_LOCATION ${KN_DEPS}/lib/libduckdb.so
  IMPORTED_SONAME libduckdb.so
  INTERFACE_INCLUDE_DIRECTORIES ${KN_DEPS}/include)

# An installed program finds libduckdb.so beside itself; a program in the build folder finds it in
# KN_DEPS (CMake adds the folder of a linked library to the build's RPATH).
set(CMAKE_BUILD_RPATH "$ORIGIN/../lib")
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
