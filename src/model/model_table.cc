#include "model/model_table.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/text.h"

namespace reprise {
namespace {

// OpenAI's models by prefix, longer prefixes first. https://platform.openai.com/docs/models
struct Row {
  std::string_view prefix;
  std::int64_t context_window, max_output_tokens;
  ModelAbilities abilities;
};
constexpr ModelAbilities kTexts{.tools = true, .images = false, .pdf = false, .audio = false, .reasoning = false};
constexpr ModelAbilities kNothing{.tools = false, .images = false, .pdf = false, .audio = false, .reasoning = false};
constexpr ModelAbilities kTextsAlone{.tools = false, .images = false, .pdf = false, .audio = false, .reasoning = true};
constexpr ModelAbilities kPictures{.tools = true, .images = true, .pdf = false, .audio = false, .reasoning = false};
constexpr ModelAbilities kPapers{.tools = true, .images = true, .pdf = true, .audio = false, .reasoning = false};
constexpr ModelAbilities kSounds{.tools = true, .images = false, .pdf = false, .audio = true, .reasoning = false};
constexpr ModelAbilities kReasons{.tools = true, .images = true, .pdf = true, .audio = false, .reasoning = true};
constexpr ModelAbilities kReasonsOnTexts{
    .tools = true, .images = false, .pdf = false, .audio = false, .reasoning = true};
constexpr std::array kOpenAi{
    Row{"gpt-5", 400'000, 128'000, kReasons},      Row{"gpt-4.1", 1'047'576, 32'768, kPapers},
    Row{"gpt-4o-audio", 128'000, 16'384, kSounds}, Row{"gpt-4o-mini-audio", 128'000, 16'384, kSounds},
    Row{"gpt-4o", 128'000, 16'384, kPapers},       Row{"gpt-audio", 128'000, 16'384, kSounds},
    Row{"chatgpt-4o", 128'000, 16'384, kPictures}, Row{"gpt-4-turbo", 128'000, 4096, kPictures},
    Row{"gpt-4-32k", 32'768, 0, kTexts},           Row{"gpt-4", 8192, 0, kTexts},
    Row{"gpt-3.5-turbo", 16'385, 4096, kTexts},    Row{"o1-mini", 128'000, 65'536, kTextsAlone},
    Row{"o1", 200'000, 100'000, kReasons},         Row{"o3-mini", 200'000, 100'000, kReasonsOnTexts},
    Row{"o3", 200'000, 100'000, kReasons},         Row{"o4-mini", 200'000, 100'000, kReasons},
};

// Claude's version: 4.6 for claude-sonnet-4-6, 3.7 for claude-3-7-sonnet-20250219. A long number is a date.
std::pair<int, int> ClaudeVersion(std::string_view name) {
  std::array<int, 2> version{0, 0};
  std::size_t found = 0;
  while (!name.empty() && found < version.size()) {
    const std::size_t end = name.find_first_of("-.@");
    const std::string_view part = name.substr(0, end);
    const auto number = part.size() <= 2 ? ParseNumber<int>(part) : std::nullopt;
    if (number) version[found++] = *number;
    if (!number && found > 0) break;
    name = end == std::string_view::npos ? std::string_view() : name.substr(end + 1);
  }
  return {version[0], version[1]};
}

// https://platform.claude.com/docs/en/models/overview. A model with a lower limit says so in an error, and later
// requests respect it.
constexpr std::int64_t kRecentOutput = 64'000;

ModelFacts ClaudeFacts(std::string_view name) {
  const auto version = ClaudeVersion(name);
  if (version.first == 0) {
    // Families without a number are new, except these.
    const bool old = name.starts_with("instant") || name.starts_with("v");
    return {.context_window = 200'000,
            .max_output_tokens = old ? 4096 : kRecentOutput,
            .abilities = old ? kNothing : kReasons};
  }
  ModelFacts facts{.context_window = version.first >= 5 ? 1'000'000 : 200'000};
  facts.max_output_tokens = version.first >= 5           ? kRecentOutput
                            : version >= std::pair(4, 5) ? kRecentOutput
                            : version.first == 4         ? 32'000
                            : version == std::pair(3, 7) ? 64'000
                            : version == std::pair(3, 5) ? 8192
                                                         : 4096;
  facts.abilities = version >= std::pair(3, 7)   ? kReasons
                    : version >= std::pair(3, 5) ? kPapers
                    : version.first == 3         ? kPictures
                                                 : kNothing;
  // Supported since 4.6; since 4.7 the only thinking mode.
  if (version >= std::pair(4, 6)) facts.thinking = ThinkingMode::kAdaptive;
  return facts;
}

}  // namespace

ModelFacts BuiltInFacts(std::string_view model) {
  if (const std::size_t slash = model.rfind('/'); slash != std::string_view::npos) model = model.substr(slash + 1);
  if (model.starts_with("claude-")) return ClaudeFacts(model.substr(std::string_view("claude-").size()));
  for (const Row& row : kOpenAi) {
    if (model.starts_with(row.prefix)) {
      return {
          .context_window = row.context_window, .max_output_tokens = row.max_output_tokens, .abilities = row.abilities};
    }
  }
  return {};
}

ModelFacts Complete(ModelFacts facts, const ModelFacts& more) {
  if (facts.context_window == 0) facts.context_window = more.context_window;
  if (facts.max_output_tokens == 0) facts.max_output_tokens = more.max_output_tokens;
  if (facts.thinking == ThinkingMode::kDefault) {
    facts.thinking = more.thinking;
    facts.thinking_budget = more.thinking_budget;
  }
  if (facts.effort == Effort::kDefault) facts.effort = more.effort;
  if (facts.cache == PromptCache::kDefault) facts.cache = more.cache;
  for (const AbilityName& ability : kAbilityNames) {
    std::optional<bool>& own = facts.abilities.*ability.member;
    if (!own) own = more.abilities.*ability.member;
  }
  return facts;
}

}  // namespace reprise
