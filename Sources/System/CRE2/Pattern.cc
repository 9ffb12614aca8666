#include "include/CRE2.h"

#include <re2/re2.h>

#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

struct cre2_pattern {
    RE2 expression;

    cre2_pattern(const re2::StringPiece &text, const RE2::Options &options) : expression(text, options) {}
};

cre2_pattern *cre2_compile(const char *pattern, size_t count, int64_t memory_max, bool *is_too_large) {
    RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(memory_max);
    auto *compiled = new (std::nothrow) cre2_pattern(re2::StringPiece(pattern, count), options);
    if (compiled != nullptr && !compiled->expression.ok()) {
        *is_too_large = compiled->expression.error_code() == RE2::ErrorPatternTooLarge;
        delete compiled;
        return nullptr;
    }
    return compiled;
}

void cre2_delete(cre2_pattern *pattern) { delete pattern; }

int cre2_program_size(const cre2_pattern *pattern) { return pattern->expression.ProgramSize(); }

int cre2_group_count(const cre2_pattern *pattern) { return pattern->expression.NumberOfCapturingGroups(); }

int cre2_group_named(const cre2_pattern *pattern, const char *name, size_t count) {
    const auto &groups = pattern->expression.NamedCapturingGroups();
    const auto found = groups.find(std::string(name, count));
    return found == groups.end() ? -1 : found->second;
}

bool cre2_matches_whole(const cre2_pattern *pattern, const char *text, size_t count) {
    return pattern->expression.Match(re2::StringPiece(text, count), 0, count, RE2::ANCHOR_BOTH, nullptr, 0);
}

bool cre2_find(const cre2_pattern *pattern, const char *text, size_t count, size_t start, int64_t *spans, int span_count) {
    std::vector<re2::StringPiece> found(span_count);
    const re2::StringPiece whole(text, count);
    if (!pattern->expression.Match(whole, start, count, RE2::UNANCHORED, found.data(), span_count)) return false;
    for (int index = 0; index < span_count; index++) {
        const bool took_part = found[index].data() != nullptr;
        spans[2 * index] = took_part ? found[index].data() - text : -1;
        spans[2 * index + 1] = took_part ? spans[2 * index] + static_cast<int64_t>(found[index].size()) : -1;
    }
    return true;
}
