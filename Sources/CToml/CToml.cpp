// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

#include "CToml.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

// Two faults of toml++ 3.3 that a malformed text can reach:
//
// It asserts that a key follows the bracket of a header, which `[=` breaks, and without assertions it tells the
// compiler to rely on that (marzer/tomlplusplus#294). Behind each of its assertions stands a check that gives an
// ordinary error, so both are taken out; the macro chooses between them by NDEBUG.
#ifdef NDEBUG
#undef NDEBUG
#endif
#define TOML_ASSERT(expression) static_assert(true)
// It declares a branch unreachable that asks whether a character is white space and is taken for most of Latin-1.
// "No" is the answer that this header means everywhere.
#include <toml++/impl/forward_declarations.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE return false
#include <toml++/impl/unicode.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE __builtin_unreachable()
#include <toml++/toml.h>

static_assert(TOML_EXCEPTIONS == 0, "parse errors are values here");

struct mh_toml_document {
    toml::table root;
    std::vector<mh_toml_node> nodes;
    std::string error;
    mh_toml_position error_position{};
};

namespace {

/// toml++ bounds the nesting of values but not of dotted keys, and a tree that deep overflows the stack when it is
/// destroyed, even after a syntax error. So the dots of each statement (up to a line end outside all brackets) are
/// counted beforehand. Strings and comments are skipped the way the grammar has them; where this scan and the parser
/// could disagree, the parser has stopped with an error before.
constexpr size_t max_dots = 1000;

class DotGuard {
public:
    explicit DotGuard(std::string_view text) : text_(text) {}

    /// False when a statement has too many dots; `position` is then that of the first one too many.
    bool accepts(mh_toml_position &position) {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '"' || c == '\'') {
                skip_string(c);
                continue;
            }
            if (c == '#') {
                at_ = std::min(text_.find('\n', at_), text_.size());
                continue;
            }
            if (c == '[' || c == '{') {
                brackets_ += 1;
            } else if ((c == ']' || c == '}') && brackets_ > 0) {
                brackets_ -= 1;
            } else if (c == '\n' && brackets_ == 0) {
                dots_ = 0;
            } else if (c == '.') {
                dots_ += 1;
                if (dots_ > max_dots) {
                    position = position_of(at_);
                    return false;
                }
            }
            at_ += 1;
        }
        return true;
    }

private:
    void skip_string(char quote) {
        const bool multiline = text_.substr(at_, 3) == std::string(3, quote);
        at_ += multiline ? 3 : 1;
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\\' && quote == '"') {
                at_ += 2;
            } else if (!multiline && (c == quote || c == '\n')) {
                at_ += 1;
                return;
            } else if (multiline && text_.substr(at_, 3) == std::string(3, quote)) {
                at_ += 3;
                // Up to two quotes may stand before the closing three.
                while (at_ < text_.size() && text_[at_] == quote) at_ += 1;
                return;
            } else {
                at_ += 1;
            }
        }
    }

    mh_toml_position position_of(size_t offset) const {
        mh_toml_position position{1, 1};
        for (size_t i = 0; i < offset; i += 1) {
            if (text_[i] == '\n') {
                position = {position.line + 1, 1};
            } else if ((static_cast<unsigned char>(text_[i]) & 0xC0) != 0x80) {
                position.column += 1;
            }
        }
        return position;
    }

    std::string_view text_;
    size_t at_ = 0;
    size_t brackets_ = 0;
    size_t dots_ = 0;
};

mh_toml_position position_of(const toml::source_region &region) {
    return {static_cast<uint32_t>(region.begin.line), static_cast<uint32_t>(region.begin.column)};
}

mh_toml_text text_of(std::string_view view) { return {view.data(), view.size()}; }

mh_toml_kind kind_of(const toml::node &node) {
    switch (node.type()) {
    case toml::node_type::table: return MH_TOML_TABLE;
    case toml::node_type::array: return MH_TOML_ARRAY;
    case toml::node_type::string: return MH_TOML_STRING;
    case toml::node_type::integer: return MH_TOML_INTEGER;
    case toml::node_type::floating_point: return MH_TOML_FLOAT;
    case toml::node_type::boolean: return MH_TOML_BOOLEAN;
    default: return MH_TOML_DATE_OR_TIME;
    }
}

/// Appends `node` and all below it. False when it is nested too deeply.
bool append(mh_toml_document &document, const toml::node &node, const toml::key *key, int depth) {
    mh_toml_node entry{};
    entry.kind = kind_of(node);
    entry.position = position_of(node.source());
    if (key != nullptr) {
        entry.key = text_of(key->str());
        entry.key_position = position_of(key->source());
    }
    if (depth > MH_TOML_MAX_DEPTH) {
        document.error = "nested too deeply";
        document.error_position = key != nullptr ? entry.key_position : entry.position;
        return false;
    }
    if (const auto *string = node.as_string()) {
        entry.text = text_of(string->get());
    } else if (const auto *integer = node.as_integer()) {
        entry.integer = integer->get();
    } else if (const auto *real = node.as_floating_point()) {
        entry.real = real->get();
    } else if (const auto *boolean = node.as_boolean()) {
        entry.integer = boolean->get() ? 1 : 0;
    }
    const auto *table = node.as_table();
    const auto *array = node.as_array();
    entry.child_count = table != nullptr ? table->size() : array != nullptr ? array->size() : 0;
    document.nodes.push_back(entry);

    if (array != nullptr) {
        for (const toml::node &child : *array) {
            if (!append(document, child, nullptr, depth + 1)) return false;
        }
    }
    if (table != nullptr) {
        // toml++ sorts by key; people read, and diagnostics appear, in the order of the text.
        std::vector<std::pair<const toml::key *, const toml::node *>> members;
        members.reserve(table->size());
        for (auto &&[name, child] : *table) members.emplace_back(&name, &child);
        std::sort(members.begin(), members.end(), [](const auto &left, const auto &right) {
            const auto &a = left.first->source().begin;
            const auto &b = right.first->source().begin;
            return a.line != b.line ? a.line < b.line : a.column < b.column;
        });
        for (const auto &[name, child] : members) {
            if (!append(document, *child, name, depth + 1)) return false;
        }
    }
    return true;
}

void parse_into(mh_toml_document &document, std::string_view text) {
    if (!DotGuard(text).accepts(document.error_position)) {
        document.error = "nested too deeply";
        return;
    }
    toml::parse_result result = toml::parse(text, std::string_view{});
    if (!result) {
        document.error = std::string(result.error().description());
        document.error_position = position_of(result.error().source());
        return;
    }
    document.root = std::move(result).table();
    if (!append(document, document.root, nullptr, 0)) {
        document.nodes.clear();
    }
}

}  // namespace

// The standard library throws when memory is short; nothing else here does.

extern "C" mh_toml_document *mh_toml_parse(const char *bytes, size_t length) {
    mh_toml_document *document = nullptr;
    try {
        document = new mh_toml_document;
        parse_into(*document, length == 0 ? std::string_view{} : std::string_view{bytes, length});
        return document;
    } catch (...) {
        delete document;
        return nullptr;
    }
}

extern "C" mh_toml_text mh_toml_error(const mh_toml_document *document, mh_toml_position *position) {
    if (document->error.empty()) return {nullptr, 0};
    if (position != nullptr) *position = document->error_position;
    return text_of(document->error);
}

extern "C" const mh_toml_node *mh_toml_nodes(const mh_toml_document *document, size_t *count) {
    *count = document->nodes.size();
    return document->nodes.data();
}

extern "C" void mh_toml_free(mh_toml_document *document) { delete document; }
