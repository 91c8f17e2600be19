#include "model/model_listing.h"
#include "support/test.h"

namespace reprise::model_table_test {
namespace {

TEST_CASE("BuiltInFacts: well-known models", "[model]") {
  CHECK(BuiltInFacts("gpt-4o-mini").context_window == 128'000);
  CHECK(BuiltInFacts("gpt-4.1-nano").context_window == 1'047'576);
  CHECK(BuiltInFacts("gpt-4").context_window == 8192);
  CHECK(BuiltInFacts("openai/gpt-5.2-codex").context_window == 400'000);  // a router's name
  CHECK(BuiltInFacts("claude-sonnet-4-5-20250929").context_window == 200'000);
  CHECK(BuiltInFacts("claude-3-5-haiku-20241022").max_output_tokens == 8192);
  CHECK(BuiltInFacts("claude-3-opus-20240229").max_output_tokens == 4096);
  CHECK(BuiltInFacts("claude-opus-5-5").context_window == 1'000'000);
  CHECK(BuiltInFacts("qwen3") == ModelFacts{});
  CHECK(BuiltInFacts("") == ModelFacts{});
  CHECK(BuiltInFacts("claude-opus-4-1-20250805").max_output_tokens == 32'000);
  CHECK(BuiltInFacts("claude-haiku-4-5-20251001").max_output_tokens == 64'000);
  CHECK(BuiltInFacts("claude-mythos-preview").max_output_tokens == 64'000);  // a separate family, without a number
  CHECK(BuiltInFacts("claude-instant").max_output_tokens == 4096);
}

TEST_CASE("BuiltInFacts: abilities of well-known models", "[model]") {
  const auto can = [](std::string_view model) {
    std::string text;
    const ModelFacts facts = BuiltInFacts(model);
    for (const AbilityName& ability : kAbilityNames) {
      if (facts.abilities.*ability.member == true)
        text += std::string(text.empty() ? "" : " ") + std::string(ability.name);
    }
    return text;
  };
  CHECK(can("gpt-4o-mini") == "tools images pdf");
  CHECK(can("gpt-4o-audio-preview") == "tools audio");
  CHECK(can("gpt-5.2-codex") == "tools images pdf reasoning");
  CHECK(can("o3-mini") == "tools reasoning");
  CHECK(can("o1-mini-2024-09-12") == "reasoning");
  CHECK(can("gpt-3.5-turbo") == "tools");
  CHECK(can("anthropic/claude-sonnet-4.5") == "tools images pdf reasoning");
  CHECK(can("claude-3-5-haiku-20241022") == "tools images pdf");
  CHECK(can("claude-3-opus-20240229") == "tools images");
  CHECK(can("claude-2.1").empty());
  CHECK(BuiltInFacts("qwen3").abilities == ModelAbilities{});
  CHECK(Complete({.abilities = {.images = false}}, BuiltInFacts("gpt-5")).abilities ==
        ModelAbilities{.tools = true, .images = false, .pdf = true, .audio = false, .reasoning = true});
}

TEST_CASE("BuiltInFacts: models that decide how much they think", "[model]") {
  for (const char* name :
       {"claude-opus-4-6", "claude-opus-4-7", "claude-sonnet-5", "claude-fable-5-1", "claude-haiku-5-5-20261001"}) {
    INFO(name);
    CHECK(BuiltInFacts(name).thinking == ThinkingMode::kAdaptive);
  }
  for (const char* name : {"claude-haiku-4-5-20251001", "claude-sonnet-4-20250514", "claude-3-7-sonnet-20250219",
                           "claude-instant", "gpt-5"}) {
    INFO(name);
    CHECK(BuiltInFacts(name).thinking == ThinkingMode::kDefault);
  }
}

TEST_CASE("Complete: configured values take precedence", "[model]") {
  const ModelFacts built_in{.context_window = 1, .max_output_tokens = 2, .thinking = ThinkingMode::kAdaptive};
  CHECK(Complete({}, built_in) == built_in);
  const ModelFacts off = Complete({.context_window = 5, .thinking = ThinkingMode::kOff}, built_in);
  CHECK(off == ModelFacts{5, 2, ThinkingMode::kOff, 0});
}

}  // namespace
}  // namespace reprise::model_table_test
