/* SPDX-License-Identifier: Apache-2.0
 * meshhost: a host for mesh radios and other byte-link devices
 *
 * A TOML 1.0 document as a flat array of nodes, each with its place in the text. The parser is toml++; this header is
 * plain C, so that neither C++ nor exceptions reach its users.
 */
#ifndef MESHHOST_CTOML_H
#define MESHHOST_CTOML_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mh_toml_kind {
    MH_TOML_TABLE,
    MH_TOML_ARRAY,
    MH_TOML_STRING,
    MH_TOML_INTEGER,
    MH_TOML_FLOAT,
    MH_TOML_BOOLEAN,
    MH_TOML_DATE_OR_TIME
} mh_toml_kind;

/* A place in the text: both count from 1, columns in Unicode scalars. */
typedef struct mh_toml_position {
    uint32_t line;
    uint32_t column;
} mh_toml_position;

/* UTF-8 that lives as long as the document; may hold NUL bytes, not terminated by one. */
typedef struct mh_toml_text {
    const char *bytes;
    size_t length;
} mh_toml_text;

typedef struct mh_toml_node {
    mh_toml_kind kind;
    mh_toml_position position;     /* where the value begins; for [x] and [[x]] the bracket */
    mh_toml_text key;              /* members of tables; {NULL, 0} elsewhere */
    mh_toml_position key_position;
    size_t child_count;            /* tables and arrays: how many direct children follow */
    mh_toml_text text;             /* strings */
    int64_t integer;               /* integers; booleans as 0 and 1 */
    double real;                   /* floats */
} mh_toml_node;

typedef struct mh_toml_document mh_toml_document;

/* Tables nested deeper than this are refused as an error of the text. */
#define MH_TOML_MAX_DEPTH 64

/* Parses UTF-8 text. NULL only when memory is short. Release with mh_toml_free. */
mh_toml_document *mh_toml_parse(const char *bytes, size_t length);

/* What is wrong with the text, and where; {NULL, 0} if nothing is. */
mh_toml_text mh_toml_error(const mh_toml_document *document, mh_toml_position *position);

/* The nodes, parents before children and children in the order of the text; the root table is the first. Empty after
 * an error. */
const mh_toml_node *mh_toml_nodes(const mh_toml_document *document, size_t *count);

/* Releases the document and everything it gave out. NULL is allowed. */
void mh_toml_free(mh_toml_document *document);

#ifdef __cplusplus
}
#endif
#endif
