#include "app/named_files.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>

#include "app/front_matter.h"
#include "app/prompt_files.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using Agent = ProjectInstructions::Agent;
using Expanded = ProjectInstructions::Expanded;
using File = ProjectInstructions::File;
using Kind = ProjectInstructions::Kind;
using State = ProjectInstructions::State;

constexpr std::string_view kExtensionOfNamed = ".md";
constexpr std::size_t kMostInFolder = 2000;

}  // namespace

std::vector<std::string> PathsIn(const std::string& folder, std::size_t most, const EntryFilter& keeps, bool& cut) {
  std::vector<std::string> paths;
  std::error_code failed;
  std::size_t entries = 0;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (++entries > kMostInFolder) break;
    if (keeps(entry->path())) paths.push_back(entry->path().string());
  }
  std::ranges::sort(paths);
  cut = paths.size() > most || entries > kMostInFolder;
  if (paths.size() > most) paths.resize(most);
  return paths;
}

std::vector<std::string> NamedFilesIn(const std::string& folder, bool& cut) {
  return PathsIn(
      folder, kMaxNamedFiles, [](const fs::path& path) { return path.extension() == kExtensionOfNamed; }, cut);
}

void ReadNamedHeads(std::vector<File>& files, ProjectInstructions::Kind kind, const HeadReader& read) {
  const std::string what(ToString(kind));
  std::map<std::string, std::string> taken;  // the file that has the name
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    file->kind = kind;
    if (file->state == State::kUnusable) continue;
    const std::string name = fs::path(file->path).stem().string();
    const auto refuse = [&](std::string problem) {
      *file = {.path = file->path, .state = State::kUnusable, .problem = std::move(problem), .kind = kind};
    };
    if (!IsSkillName(name)) {
      refuse(file->path + ": the name of a file of this kind (" + what +
             ") may be at most 64 small letters, digits and single hyphens between them");
      continue;
    }
    if (const auto [first, is_new] = taken.emplace(name, file->path); !is_new) {
      refuse(file->path + ": the " + what + " \"" + name + "\" is " + first->second + ", which lies nearer");
      continue;
    }
    file->name = name;
    if (file->state != State::kUsed) continue;
    auto description = read(file->text);
    if (!description) {
      refuse(file->path + ": " + description.error().message);
      continue;
    }
    file->description = *std::move(description);
  }
}

Error NotAllowedYet(const File& file) {
  return Refused(Reason::kUntrusted, file.path + (file.state == State::kNew ? " is new" : " has changed") +
                                         ", so it is not used before you have allowed it: `reprise trust " + file.path +
                                         "`, or /instructions");
}

namespace {

constexpr std::size_t kMostTools = 100;

// The names in a list, or in a text that separates them by commas or spaces.
std::vector<std::string> NamesIn(const std::vector<std::string>& texts) {
  std::vector<std::string> names;
  for (std::string_view text : texts) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find_first_of(", \t\r\n"), text.size());
      if (end > 0) names.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  return names;
}

struct AgentHead {
  std::string description;
  Agent agent;
};

Result<AgentHead> ReadAgent(std::string_view text) {
  const auto front = TRY(ReadFrontMatter(text, {"description", "model", "mode"}, "tools"));
  if (!front.others.empty()) {
    return Fail(WrongFrontMatter("has the member \"" + VisibleOnOneLine(front.others.front()) +
                                 "\"; that of an agent has description, tools, model and mode"));
  }
  AgentHead head{.description = DescriptionLine(front.Text("description")),
                 .agent = {.name = {}, .instructions = std::string(Trimmed(front.body)), .model = front.Text("model")}};
  if (head.description.empty()) {
    return Fail(WrongFrontMatter("has no description, so the model cannot tell what the agent is for"));
  }
  if (front.members.contains("model") && head.agent.model.empty()) return Fail(WrongFrontMatter("has an empty model"));
  if (const auto tools = front.members.find("tools"); tools != front.members.end()) {
    head.agent.tools = NamesIn(tools->second);
    if (head.agent.tools->empty() || head.agent.tools->size() > kMostTools) {
      return Fail(WrongFrontMatter("must name 1 to " + std::to_string(kMostTools) + " tools if it has a member tools"));
    }
  }
  if (front.members.contains("mode")) {
    head.agent.mode = ParseApprovalMode(front.Text("mode"));
    if (!head.agent.mode) {
      return Fail(WrongFrontMatter("has the mode \"" + VisibleOnOneLine(front.Text("mode")) + "\", which is none"));
    }
  }
  if (head.agent.instructions.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "there are no instructions after the front matter");
  }
  return head;
}

}  // namespace

void ReadAgentHeads(std::vector<File>& files) {
  ReadNamedHeads(files, Kind::kAgent, [](std::string_view text) {
    return ReadAgent(text).map([](AgentHead&& head) { return head.description; });
  });
}

Result<Agent> AgentNamed(const std::vector<File>& files, std::string_view name) {
  // The nearest is the last. An unusable file has no name, but hides none either.
  const auto file = std::find_if(files.rbegin(), files.rend(),
                                 [&](const File& each) { return each.state != State::kUnusable && each.name == name; });
  if (file == files.rend()) {
    const auto broken = std::find_if(files.rbegin(), files.rend(),
                                     [&](const File& each) { return std::filesystem::path(each.path).stem() == name; });
    if (broken != files.rend()) return Fail(ErrorCode::kInvalidArgument, broken->problem);
    return Fail(Reason::kNoSuchAgent, "there is no agent " + VisibleOnOneLine(name) + " in this folder");
  }
  if (file->state != State::kUsed) return Fail(NotAllowedYet(*file));
  auto head = TRY(ReadAgent(file->text));
  head.agent.name = file->name;
  return std::move(head.agent);
}

namespace {

constexpr std::string_view kAll = "$ARGUMENTS";

Result<FrontMatter> ReadCommand(std::string_view text) { return ReadFrontMatter(text, {"description", "model"}); }

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
    const auto front = TRY(ReadCommand(text));
    const std::string_view body = Trimmed(front.body);
    if (body.empty()) return Fail(ErrorCode::kInvalidArgument, "it has no text");
    std::string description = DescriptionLine(front.Text("description"));
    if (!description.empty()) return description;
    return DescriptionLine(body.substr(0, body.find('\n')));
  });
}

Result<Expanded> ExpandCommand(const std::vector<File>& files, std::string_view name, std::string_view arguments) {
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
    const auto built_in = std::ranges::find(kBuiltInCommands, name, &BuiltInCommand::name);
    if (built_in != std::end(kBuiltInCommands)) return Expanded{TRY(Filled(built_in->text, Trimmed(arguments)))};
    return Fail(Reason::kNoSuchCommand, "there is no command or skill " + VisibleOnOneLine(name) + " in this folder");
  }
  if (file->state != State::kUsed) return Fail(NotAllowedYet(*file));
  const auto front = TRY(ReadCommand(file->text));
  const std::string_view body = Trimmed(front.body);
  std::string text;
  if (file->kind == Kind::kSkill) {
    text = "Use the skill " + file->name + " (" + file->path + "; paths in it are relative to its folder):\n\n";
  }
  text += body;
  auto message = TRY(Filled(text, Trimmed(arguments)));
  if (Trimmed(message).empty()) return Fail(ErrorCode::kInvalidArgument, file->path + " has no text");
  return Expanded{.message = std::move(message), .model = front.Text("model")};
}

}  // namespace reprise
