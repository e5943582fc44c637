/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices */
#include "options.h"

#include <string.h>

/* Where the scan is, and where the text ends: it is not NUL-ended (O1). */
typedef struct {
  const char *at, *end;
} scanner;

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* The code unit behind \u; -1 for none. */
static long code_unit(scanner *json) {
  long unit = 0;
  for (int i = 0; i < 4; i++) {
    int digit = json->at < json->end ? hex_digit(*json->at++) : -1;
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

static size_t utf8(long code, char out[4]) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  if (code < 0x800) {
    out[0] = (char)(0xC0 | code >> 6);
    out[1] = (char)(0x80 | (code & 0x3F));
    return 2;
  }
  if (code < 0x10000) {
    out[0] = (char)(0xE0 | code >> 12);
    out[1] = (char)(0x80 | (code >> 6 & 0x3F));
    out[2] = (char)(0x80 | (code & 0x3F));
    return 3;
  }
  out[0] = (char)(0xF0 | code >> 18);
  out[1] = (char)(0x80 | (code >> 12 & 0x3F));
  out[2] = (char)(0x80 | (code >> 6 & 0x3F));
  out[3] = (char)(0x80 | (code & 0x3F));
  return 4;
}

/* What stands behind a backslash, as UTF-8; 0 bytes for what is none. */
static size_t escape(scanner *json, char out[4]) {
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  char name = json->at < json->end ? *json->at++ : 0;
  if (name != 'u') {
    const char *found = name ? strchr(names, name) : NULL;
    if (!found) return 0;
    out[0] = values[found - names];
    return 1;
  }
  long code = code_unit(json);
  if (code >= 0xD800 && code < 0xDC00) { /* the first of a pair */
    if (json->end - json->at < 2 || json->at[0] != '\\' || json->at[1] != 'u') return 0;
    json->at += 2;
    long low = code_unit(json);
    if (low < 0xDC00 || low > 0xDFFF) return 0;
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  return code > 0 ? utf8(code, out) : 0;
}

/* Reads a text, at whose opening quote the scan stands. Returns its length, -1 when it does not fit or is broken. */
static long read_text(scanner *json, char *buffer, size_t size) {
  size_t length = 0;
  int fits = 1;
  if (json->at == json->end || *json->at != '"') return -1;
  for (json->at++; json->at < json->end && *json->at != '"';) {
    char bytes[4];
    size_t count = 1;
    bytes[0] = *json->at++;
    if (bytes[0] == '\\') count = escape(json, bytes);
    if (count == 0 || length + count >= size) fits = 0; else memcpy(buffer + length, bytes, count);
    length += count;
  }
  if (json->at == json->end) return -1;
  json->at++;
  if (!fits) return -1;
  buffer[length] = 0;
  return (long)length;
}

static void skip(scanner *json, const char *set) {
  while (json->at < json->end && strchr(set, *json->at)) json->at++;
}

/* A number, true, false or null: the host writes no more than these and texts. */
static void skip_word(scanner *json) {
  while (json->at < json->end && !strchr(",}", *json->at)) json->at++;
}

int read_option(mh_str text, const char *name, char *buffer, size_t size) {
  scanner json = {text.ptr, text.ptr + text.len};
  char key[64];
  for (;;) {
    skip(&json, " \t\r\n{,");
    if (json.at == json.end || *json.at != '"') return 0;
    int is_it = read_text(&json, key, sizeof key) >= 0 && strcmp(key, name) == 0;
    skip(&json, " \t\r\n:");
    if (is_it) return read_text(&json, buffer, size) >= 0 ? 1 : -1;
    if (json.at < json.end && *json.at == '"') {
      char other[1];
      read_text(&json, other, sizeof other); /* too long for it, but passed over */
    } else {
      skip_word(&json);
    }
  }
}
