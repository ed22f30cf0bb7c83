# SPDX-License-Identifier: Apache-2.0
# bench/scan_capi.c -> bench_scan_capi, built by bench/run only: what DuckDB alone needs for a scan.
add_executable(bench_scan_capi EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/scan_capi.c)
target_link_libraries(bench_scan_capi PRIVATE kn_flags kn::duckdb)
set_target_properties(bench_scan_capi PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

# bench/core.c -> bench_core: what the core of a served catalog needs, without HTTP around it.
add_executable(bench_core EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/core.c)
target_link_libraries(bench_core PRIVATE kn_flags kn_catalog)
set_target_properties(bench_core PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
