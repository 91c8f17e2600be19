#include "app/command_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "app/front_matter.h"
#include "app/named_files.h"
#include "app/prompt_files.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using File = ProjectInstructions::File;
using Kind = ProjectInstructions::Kind;
using State = ProjectInstructions::State;

constexpr std::string_view kAll = "$ARGUMENTS";

Result<FrontMatter> Read(std::string_view text) { return ReadFrontMatter(text, {"description", "model"}); }

// Divided at white space; text between quotes of one kind is one argument.
std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (const char c : text) {
    const bool ends_word = quote == 0 && (c == ' ' || c == '\t' || c == '\n' || c == '\r');
    if (!ends_word && !std::exchange(in_word, true)) words.emplace_back();
    if (ends_word) {
      in_word = false;
    } else if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote != 0 ? '\0' : c;
    } else {
      words.back() += c;
    }
  }
  return words;
}

// The digit of a "$N" at the beginning of `text`; 0: none. "$10" is no argument but an amount.
std::size_t NumberAt(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() < 2 || text[1] < '1' || text[1] > '9' || (text.size() > 2 && is_digit(text[2]))) return 0;
  return static_cast<std::size_t>(text[1] - '0');
}

// Replaces in one pass, so that arguments are not searched for placeholders themselves.
Result<std::string> Filled(std::string_view text, std::string_view arguments) {
  const std::vector<std::string> words = Words(arguments);
  std::string filled;
  bool took_any = false;
  const auto add = [&](std::string_view part) {
    if (filled.size() + part.size() > kMaxExpanded) return false;
    filled += part;
    return true;
  };
  while (!text.empty()) {
    const std::size_t number = NumberAt(text);
    const bool all = text.starts_with(kAll);
    took_any = took_any || all || number > 0;
    const std::string_view word = number > 0 && number <= words.size() ? words[number - 1] : std::string_view();
    const std::size_t plain = std::min(text.find('$', 1), text.size());
    const bool fits = add(all ? arguments : number > 0 ? word : text.substr(0, plain));
    if (!fits)
      return Fail(Reason::kTooLarge, "the message would have more than " + std::to_string(kMaxExpanded) + " bytes");
    text.remove_prefix(all ? kAll.size() : number > 0 ? 2 : plain);
  }
  if (took_any || arguments.empty()) return filled;
  if (!add("\n\n") || !add(arguments)) {
    return Fail(Reason::kTooLarge, "the message would have more than " + std::to_string(kMaxExpanded) + " bytes");
  }
  return filled;
}

}  // namespace

void ReadCommandHeads(std::vector<File>& files) {
  ReadNamedHeads(files, Kind::kCommand, [](std::string_view text) -> Result<std::string> {
    const auto front = TRY(Read(text));
    std::string description = DescriptionLine(front.Text("description"));
    if (!description.empty()) return description;
    const std::string_view body = Trimmed(front.body);
    return DescriptionLine(body.substr(0, body.find('\n')));
  });
}

Result<ProjectInstructions::Expanded> ExpandCommand(const std::vector<File>& files, std::string_view name,
                                                    std::string_view arguments) {
  // The commands come last, and the nearest of them last.
  const auto file = std::find_if(files.rbegin(), files.rend(), [&](const File& each) {
    const bool is_message = each.kind == Kind::kCommand || each.kind == Kind::kSkill;
    return is_message && each.state != State::kUnusable && each.name == name;
  });
  if (file == files.rend()) {
    const auto broken = std::find_if(files.rbegin(), files.rend(), [&](const File& each) {
      return each.kind == Kind::kCommand && fs::path(each.path).stem() == name;
    });
    if (broken != files.rend()) return Fail(ErrorCode::kInvalidArgument, broken->problem);
    return Fail(Reason::kNoSuchCommand, "there is no command or skill " + VisibleOnOneLine(name) + " in this folder");
  }
  if (file->state != State::kUsed) return Fail(NotAllowedYet(*file));
  const auto front = TRY(Read(file->text));
  const std::string_view body = Trimmed(front.body);
  std::string text;
  if (file->kind == Kind::kSkill) {
    text = "Use the skill " + file->name + " (" + file->path + "; paths in it are relative to its folder):\n\n";
  }
  text += body;
  auto message = TRY(Filled(text, Trimmed(arguments)));
  if (Trimmed(message).empty()) return Fail(ErrorCode::kInvalidArgument, file->path + " has no text");
  return ProjectInstructions::Expanded{.message = std::move(message), .model = front.Text("model")};
}

}  // namespace reprise
