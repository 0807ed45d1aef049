# Finds MLIR/LLVM 22 and offers dspark_mlir_library(): a static library that shares one precompiled header.

find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22) # no version argument: MLIR's config accepts none
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "DSpark needs LLVM/MLIR 22, found ${LLVM_PACKAGE_VERSION} in ${MLIR_DIR}; "
                      "set CMAKE_PREFIX_PATH=/usr/lib/llvm-22")
endif()
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(dspark_mlir_flags INTERFACE)
target_include_directories(dspark_mlir_flags SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(dspark_mlir_flags INTERFACE ${llvm_definitions})
# The shared libraries only: mixing them with the static archives would duplicate TypeIDs.
target_link_libraries(dspark_mlir_flags INTERFACE dspark_flags MLIR LLVM)

add_library(dspark_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/Pch.cpp)
target_link_libraries(dspark_pch PRIVATE dspark_mlir_flags)
target_precompile_headers(dspark_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/Pch.h)

function(dspark_mlir_library name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PUBLIC dspark_mlir_flags)
  target_precompile_headers(${name} REUSE_FROM dspark_pch)
endfunction()
function(dspark_mlir_executable name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE dspark_mlir_flags) # no precompiled header: executables are -fPIE, it is -fPIC
endfunction()
