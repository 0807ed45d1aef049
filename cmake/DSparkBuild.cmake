# Flags every target shares, and the helpers that keep the per-folder build files short.

find_program(CCACHE ccache)
if(CCACHE)
  # Relative paths in the hash, so that a checkout in another folder hits too; the sloppiness is what ccache's manual
  # asks for with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # Lets ccache hit through precompiled headers.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  add_link_options(-fuse-ld=lld-22)
endif()

add_library(dspark_flags INTERFACE)
target_compile_options(dspark_flags INTERFACE -Wall -Wextra -Werror -Wno-unused-parameter -Wno-deprecated-declarations -fno-math-errno -ffp-contract=off)
target_include_directories(dspark_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR})
if(DSPARK_ASSERTS)
  target_compile_options(dspark_flags INTERFACE -UNDEBUG)
endif()
if(DSPARK_SANITIZE)
  add_compile_options(-fsanitize=${DSPARK_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${DSPARK_SANITIZE})
  if(DSPARK_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
if(DSPARK_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# dspark_isa_flags(files...): a source named *_avx2.cpp, *_avx512.cpp, *_avx512bf16.cpp (the same with products of bf16) or
# *_amx.cpp is compiled for that ISA level; all else is
# baseline x86-64. The levels are chosen at run time from CPUID (kernels/common/isa.h), never by the build machine.
set(DSPARK_AVX2_FLAGS -mavx2 -mfma -mf16c -mbmi2)
set(DSPARK_AVX512_FLAGS ${DSPARK_AVX2_FLAGS} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mprefer-vector-width=512)
set(DSPARK_AVX512BF16_FLAGS ${DSPARK_AVX512_FLAGS} -mavx512bf16)
set(DSPARK_AMX_FLAGS ${DSPARK_AVX512_FLAGS} -mamx-tile -mamx-int8 -mamx-bf16)
function(dspark_isa_flags)
  foreach(file ${ARGN})
    if(file MATCHES "_avx2\\.cpp$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${DSPARK_AVX2_FLAGS}")
    elseif(file MATCHES "_avx512\\.cpp$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${DSPARK_AVX512_FLAGS}")
    elseif(file MATCHES "_avx512bf16\\.cpp$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${DSPARK_AVX512BF16_FLAGS}")
    elseif(file MATCHES "_amx\\.cpp$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${DSPARK_AMX_FLAGS}")
    endif()
  endforeach()
endfunction()
