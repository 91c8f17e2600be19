#include "rewind/unified_diff.h"

#include <algorithm>
#include <dtl/dtl.hpp>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace reprise {
namespace {

// dtl takes 12 ms per 500 lines in the worst case. In longer files everything counts as changed.
constexpr std::size_t kMostComparedLines = 20'000;

std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

void AppendLine(std::string& out, char sign, const std::string& line) {
  out += sign;
  out += line;
  if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
}

std::string Range(long long begin, long long count) {
  return std::to_string(count == 0 ? 0 : begin) + (count == 1 ? "" : "," + std::to_string(count));
}

// Quotes unusual characters as git does.
std::string Quoted(std::string_view prefix, std::string_view path) {
  std::string out;
  bool plain = true;
  for (const char c : std::string(prefix) + std::string(path)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\', out += c, plain = false;
    } else if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t", plain = false;
    } else if (byte < 0x20 || byte >= 0x7f) {
      const char digits[] = {'\\', static_cast<char>('0' + (byte >> 6)), static_cast<char>('0' + (byte >> 3 & 7)),
                             static_cast<char>('0' + (byte & 7))};
      out.append(digits, sizeof digits), plain = false;
    } else {
      out += c;
    }
  }
  return plain ? out : "\"" + out + "\"";
}

std::string ModeOf(const FileVersion& version) {
  if (version.kind == FileVersion::Kind::kLink) return "120000";
  return (version.mode & 0100) != 0 ? "100755" : "100644";
}

bool IsText(std::string_view content) { return content.find('\0') == std::string_view::npos && IsUtf8(content); }

void AppendHunks(std::string& out, const std::string& before, const std::string& after) {
  const std::vector<std::string> from = LinesOf(before), to = LinesOf(after);
  if (from.size() + to.size() > kMostComparedLines) {
    out += "@@ -" + Range(1, static_cast<long long>(from.size())) + " +" + Range(1, static_cast<long long>(to.size())) +
           " @@\n";
    for (const std::string& line : from) AppendLine(out, '-', line);
    for (const std::string& line : to) AppendLine(out, '+', line);
    return;
  }
  dtl::Diff<std::string, std::vector<std::string>> diff(from, to);
  diff.onHuge();
  diff.compose();
  diff.composeUnifiedHunks();
  for (const auto& hunk : diff.getUniHunks()) {
    out += "@@ -" + Range(hunk.a, hunk.b) + " +" + Range(hunk.c, hunk.d) + " @@\n";
    for (const auto& line : hunk.common[0]) AppendLine(out, ' ', line.first);
    for (const auto& line : hunk.change) {
      AppendLine(out,
                 line.second.type == dtl::SES_ADD      ? '+'
                 : line.second.type == dtl::SES_DELETE ? '-'
                                                       : ' ',
                 line.first);
    }
    for (const auto& line : hunk.common[1]) AppendLine(out, ' ', line.first);
  }
}

std::string OneSided(const WorkspaceChange& change, const std::optional<std::string>& before,
                     const std::optional<std::string>& after) {
  const auto content = [](const std::optional<FileVersion>& version) {
    return version && version->kind != FileVersion::Kind::kDirectory;
  };
  const bool was = content(change.before), is = content(change.after);
  if (!was && !is) return {};
  const std::string a = Quoted("a/", change.path), b = Quoted("b/", change.path);
  std::string out = "diff --git " + a + " " + b + "\n";
  if (!was) {
    out += "new file mode " + ModeOf(*change.after) + "\n";
  } else if (!is) {
    out += "deleted file mode " + ModeOf(*change.before) + "\n";
  } else if (ModeOf(*change.before) != ModeOf(*change.after)) {
    out += "old mode " + ModeOf(*change.before) + "\nnew mode " + ModeOf(*change.after) + "\n";
  }
  const std::string from = was ? a : "/dev/null", to = is ? b : "/dev/null";
  const bool lost = (was && !before) || (is && !after);
  const std::string old_text = before.value_or(""), new_text = after.value_or("");
  if (lost) return out + "Binary files " + from + " and " + to + " differ (a content is not kept)\n";
  // git knows only one mode bit, so a diff cannot show changes of the others.
  const bool is_told = !was || !is || ModeOf(*change.before) != ModeOf(*change.after);
  if (old_text == new_text) return is_told ? out : std::string();
  if (!IsText(old_text) || !IsText(new_text)) return out + "Binary files " + from + " and " + to + " differ\n";
  out += "--- " + from + "\n+++ " + to + "\n";
  AppendHunks(out, old_text, new_text);
  return out;
}

}  // namespace

std::string UnifiedDiff(const WorkspaceChange& change, const std::optional<std::string>& before,
                        const std::optional<std::string>& after) {
  // Like git, shows a file that became a link (or the reverse) as removed and created.
  const bool other_kind = change.before && change.after && change.before->kind != change.after->kind;
  if (!other_kind) return OneSided(change, before, after);
  return OneSided({.path = change.path, .before = change.before}, before, std::nullopt) +
         OneSided({.path = change.path, .before = std::nullopt, .after = change.after}, std::nullopt, after);
}

}  // namespace reprise
