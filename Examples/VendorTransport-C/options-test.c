/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices */
#include "options.h"

#include <stdio.h>
#include <string.h>

static int failures;

static void expect(const char *json, const char *name, int result, const char *value) {
  char buffer[16] = "untouched";
  mh_str text = {json, strlen(json)};
  int got = read_option(text, name, buffer, sizeof buffer);
  if (got == result && (result != 1 || strcmp(buffer, value) == 0)) return;
  printf("FAIL %s in %s: %d \"%s\", not %d \"%s\"\n", name, json, got, buffer, result, value);
  failures++;
}

int main(void) {
  expect("{}", "path", 0, "");
  expect("", "path", 0, "");
  expect("{\"path\":\"/run/a\"}", "path", 1, "/run/a");
  expect("{\"bind\":\"\",\"path\":\"/run/a\"}", "path", 1, "/run/a");
  expect("{\"bind\":\"\",\"path\":\"/run/a\"}", "bind", 1, "");
  expect("{\"n\":12,\"yes\":true,\"path\":\"x\"}", "path", 1, "x");
  expect("{ \"path\" : \"a b\" }", "path", 1, "a b");
  expect("{\"other\":\"\\\"path\\\":\\\"no\\\"\",\"path\":\"yes\"}", "path", 1, "yes");
  expect("{\"path\":\"a\\\\b\\/c\\n\"}", "path", 1, "a\\b/c\n");
  expect("{\"path\":\"\\u00e9\\u20ac\\ud83d\\ude00\"}", "path", 1, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  expect("{\"path\":\"fifteen letters\"}", "path", 1, "fifteen letters");
  expect("{\"path\":\"sixteen letters!\"}", "path", -1, "");
  expect("{\"path\":7}", "path", -1, "");
  expect("{\"path\":\"a\\u0000b\"}", "path", -1, "");
  expect("{\"path\":\"open", "path", -1, "");
  expect("{\"path\":\"\\ud83d\"}", "path", -1, "");
  if (!failures) puts("all passed");
  return failures != 0;
}
