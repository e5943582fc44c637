// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

// The entry of libFuzzer for programs that have a main of their own (LLVM, docs/LibFuzzer.rst, "Using libFuzzer as a
// library").
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*callback)(const uint8_t *data, size_t size));
