#include "model/model_listing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/mutex.h"
#include "base/text.h"
#include "model/provider_error.h"
#include "model/provider_response.h"

namespace reprise {
namespace {

// OpenAI's models by prefix, longer prefixes first. https://platform.openai.com/docs/models
struct Row {
  std::string_view prefix;
  std::int64_t context_window, max_output_tokens;
  ModelAbilities abilities;
  EditFormat edit_format = EditFormat::kDefault;
};
constexpr ModelAbilities kTexts{.tools = true, .images = false, .pdf = false, .audio = false, .reasoning = false};
constexpr ModelAbilities kNothing{.tools = false, .images = false, .pdf = false, .audio = false, .reasoning = false};
constexpr ModelAbilities kTextsAlone{.tools = false, .images = false, .pdf = false, .audio = false, .reasoning = true};
constexpr ModelAbilities kPictures{.tools = true, .images = true, .pdf = false, .audio = false, .reasoning = false};
constexpr ModelAbilities kPapers{.tools = true, .images = true, .pdf = true, .audio = false, .reasoning = false};
constexpr ModelAbilities kSounds{.tools = true, .images = false, .pdf = false, .audio = true, .reasoning = false};
constexpr ModelAbilities kHears{.tools = true, .images = true, .pdf = false, .audio = true, .reasoning = false};
constexpr ModelAbilities kReasons{.tools = true, .images = true, .pdf = true, .audio = false, .reasoning = true};
constexpr ModelAbilities kReasonsOnTexts{
    .tools = true, .images = false, .pdf = false, .audio = false, .reasoning = true};
constexpr std::array kOpenAi{
    // Trained on the patches of apply_patch: https://cookbook.openai.com/examples/gpt4-1_prompting_guide
    Row{"gpt-5", 400'000, 128'000, kReasons, EditFormat::kPatch},
    Row{"codex-mini", 200'000, 100'000, kReasons, EditFormat::kPatch},
    Row{"gpt-4.1", 1'047'576, 32'768, kPapers, EditFormat::kPatch},
    Row{"gpt-4o-realtime", 32'000, 4096, kSounds},
    Row{"gpt-4o-mini-realtime", 16'000, 4096, kSounds},
    Row{"gpt-4o-audio", 128'000, 16'384, kSounds},
    Row{"gpt-4o-mini-audio", 128'000, 16'384, kSounds},
    Row{"gpt-4o", 128'000, 16'384, kPapers},
    Row{"gpt-realtime", 32'000, 4096, kHears},
    Row{"gpt-audio", 128'000, 16'384, kSounds},
    Row{"chatgpt-4o", 128'000, 16'384, kPictures},
    Row{"gpt-4-turbo", 128'000, 4096, kPictures},
    Row{"gpt-4-32k", 32'768, 0, kTexts},
    Row{"gpt-4", 8192, 0, kTexts},
    Row{"gpt-3.5-turbo", 16'385, 4096, kTexts},
    Row{"o1-mini", 128'000, 65'536, kTextsAlone},
    Row{"o1", 200'000, 100'000, kReasons},
    Row{"o3-mini", 200'000, 100'000, kReasonsOnTexts},
    Row{"o3", 200'000, 100'000, kReasons},
    Row{"o4-mini", 200'000, 100'000, kReasons},
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
      return {.context_window = row.context_window,
              .max_output_tokens = row.max_output_tokens,
              .abilities = row.abilities,
              .edit_format = row.edit_format};
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
  if (facts.edit_format == EditFormat::kDefault) facts.edit_format = more.edit_format;
  for (const AbilityName& ability : kAbilityNames) {
    std::optional<bool>& own = facts.abilities.*ability.member;
    if (!own) own = more.abilities.*ability.member;
  }
  return facts;
}

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

struct ListingCache::State {
  struct Listing {
    std::vector<ListedModel> models;
    Clock::time_point good_until{};
    bool asked = false;  // and has not answered yet
    Clock::time_point asked_at{};
  };
  const Listing* Find(std::string_view provider) const REQUIRES(mutex) {
    const auto found = listings.find(provider);
    return found == listings.end() ? nullptr : &found->second;
  }

  mutable Mutex mutex;
  Condition answered;
  std::map<std::string, Listing, std::less<>> listings GUARDED_BY(mutex);
};

ListingCache::ListingCache(Limits limits) : limits_(limits), state_(std::make_shared<State>()) {}

ListingCache::~ListingCache() {
  stop_.request_stop();
  MutexLock lock(state_->mutex);
  state_->answered.wait(lock, [this]() REQUIRES(state_->mutex) {
    return std::none_of(state_->listings.begin(), state_->listings.end(),
                        [](const auto& each) { return each.second.asked; });
  });
}

void ListingCache::Refresh(const std::map<std::string, ModelClient*>& clients) {
  std::vector<std::pair<std::string, ModelClient*>> old;
  {
    const MutexLock lock(state_->mutex);
    const auto now = Clock::now();
    for (const auto& [provider, client] : clients) {
      State::Listing& listing = state_->listings[provider];
      if (listing.asked || listing.good_until > now) continue;
      listing.asked = true;
      listing.asked_at = now;
      old.emplace_back(provider, client);
    }
  }
  for (const auto& [provider, client] : old) {
    client->ListModels(stop_.get_token(), [state = state_, limits = limits_,
                                           name = provider](Result<std::vector<ListedModel>> models) {
      if (!models) LogInfo("a provider did not list its models", {{"provider", name}, {"code", models.error().reason}});
      const MutexLock lock(state->mutex);
      State::Listing& listing = state->listings[name];
      listing.asked = false;
      listing.good_until = Clock::now() + (models ? limits.keep : limits.keep_failure);
      if (models) listing.models = *std::move(models);  // on failure, keeps the old list
      state->answered.notify_all();
    });
  }
  // If a provider was asked already, waits only for the rest of its time.
  MutexLock lock(state_->mutex);
  for (const auto& [provider, client] : clients) {
    const State::Listing& listing = state_->listings[provider];
    state_->answered.wait_until(lock, listing.asked_at + limits_.wait, [&] { return !listing.asked; });
  }
}

std::vector<ListedModel> ListingCache::Models(std::string_view provider) const {
  const MutexLock lock(state_->mutex);
  const State::Listing* listing = state_->Find(provider);
  return listing == nullptr ? std::vector<ListedModel>() : listing->models;
}

std::optional<ListedModel> ListingCache::Find(std::string_view provider, std::string_view model) const {
  const MutexLock lock(state_->mutex);
  const State::Listing* listing = state_->Find(provider);
  if (listing == nullptr) return std::nullopt;
  const auto found = std::find_if(listing->models.begin(), listing->models.end(),
                                  [&](const ListedModel& each) { return each.name == model; });
  return found == listing->models.end() ? std::nullopt : std::optional(*found);
}

namespace {

constexpr std::size_t kMaxBytes = 8u << 20;  // the largest router's list has half a megabyte
constexpr std::chrono::seconds kTimeLimit{30};
constexpr std::size_t kMaxModels = 5000;
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::int64_t kMaxContextWindow = 1'000'000'000;

// vLLM, OpenRouter, Groq, LM Studio, Mistral, Anthropic, llama.cpp (in "meta"). The loaded context size beats the
// trained one.
constexpr std::array kContextMembers{
    "max_model_len",      "loaded_context_length", "context_length", "context_window", "max_context_length",
    "max_context_window", "max_input_tokens",      "n_ctx",          "n_ctx_train"};

std::int64_t ContextWindowIn(const Json& object) {
  for (const char* member : kContextMembers) {
    const Json& found = MemberOf(object, member);
    if (!found.is_number_unsigned()) continue;
    const auto tokens = found.get<std::uint64_t>();
    if (tokens > 0 && tokens <= kMaxContextWindow) return static_cast<std::int64_t>(tokens);
  }
  return 0;
}

// --- what a model can do ---------------------------------------------------------------------------------------------

struct AbilityWord {
  std::string_view word;
  std::optional<bool> ModelAbilities::*member;
};

// OpenRouter, and servers with its list format.
constexpr AbilityWord kModalities[] = {{"image", &ModelAbilities::images},
                                       {"file", &ModelAbilities::pdf},
                                       {"pdf", &ModelAbilities::pdf},
                                       {"audio", &ModelAbilities::audio}};
constexpr AbilityWord kParameters[] = {{"tools", &ModelAbilities::tools}, {"reasoning", &ModelAbilities::reasoning}};
// Anthropic and Mistral use an object, llama.cpp, LM Studio and Ollama an array, Fireworks members of the model.
constexpr AbilityWord kCapabilities[] = {
    {"function_calling", &ModelAbilities::tools}, {"tools", &ModelAbilities::tools},
    {"tool_use", &ModelAbilities::tools},         {"supports_tools", &ModelAbilities::tools},
    {"image_input", &ModelAbilities::images},     {"vision", &ModelAbilities::images},
    {"multimodal", &ModelAbilities::images},      {"supports_image_input", &ModelAbilities::images},
    {"pdf_input", &ModelAbilities::pdf},          {"audio", &ModelAbilities::audio},
    {"thinking", &ModelAbilities::reasoning},     {"reasoning", &ModelAbilities::reasoning}};

// Reads a list of words. `is_whole`: the model lacks every ability that the list does not name.
void ReadWords(const Json& holder, const char* member, std::span<const AbilityWord> words, bool is_whole,
               ModelAbilities& abilities) {
  const Json& list = MemberOf(holder, member);
  if (!list.is_array()) return;
  for (const AbilityWord& known : words) {
    if (is_whole && !(abilities.*known.member)) abilities.*known.member = false;
  }
  for (const Json& word : list) {
    if (!word.is_string()) continue;
    for (const AbilityWord& known : words) {
      if (word.get_ref<const std::string&>() == known.word) abilities.*known.member = true;
    }
  }
}

// Members that are true or false, or {"supported": ...}. Nothing if it is no object.
void ReadFlags(const Json& object, ModelAbilities& abilities) {
  for (const AbilityWord& known : kCapabilities) {
    const Json& value = MemberOf(object, known.word);
    const Json& flag = value.is_object() ? MemberOf(value, "supported") : value;
    if (flag.is_boolean()) abilities.*known.member = flag.get<bool>();
  }
}

ModelAbilities AbilitiesIn(const Json& entry) {
  ModelAbilities abilities;
  ReadFlags(entry, abilities);
  ReadFlags(MemberOf(entry, "capabilities"), abilities);
  ReadWords(entry, "capabilities", kCapabilities, /*is_whole=*/false, abilities);
  ReadWords(entry, "supported_parameters", kParameters, /*is_whole=*/true, abilities);
  ReadWords(entry, "supported_features", kParameters, /*is_whole=*/true, abilities);
  const Json& architecture = MemberOf(entry, "architecture");
  ReadWords(architecture.is_object() ? architecture : entry, "input_modalities", kModalities, /*is_whole=*/true,
            abilities);
  return abilities;
}

// --- what it costs ---------------------------------------------------------------------------------------------------

// The price of one token, as OpenRouter writes it: "0.0000025". nullopt: unknown, or variable ("-1").
std::optional<double> PriceIn(const Json& pricing, const char* member) {
  constexpr double kTokensPerPrice = 1e6, kMost = 1e9;
  const auto text = ParseNumber<double>(TextMember(pricing, member));
  if (!text) return std::nullopt;
  const double price = *text * kTokensPerPrice;
  if (!(price >= 0 && price <= kMost)) return std::nullopt;
  constexpr double kLeastDigit = 1e6;  // rounds to readable values, not 0.15000000000000002
  return std::round(price * kLeastDigit) / kLeastDigit;
}

std::optional<ModelPrice> PriceIn(const Json& entry) {
  const Json& pricing = MemberOf(entry, "pricing");
  const auto input = PriceIn(pricing, "prompt"), output = PriceIn(pricing, "completion");
  if (!input || !output) return std::nullopt;
  return ModelPrice{.input = *input,
                    .output = *output,
                    .cache_read = PriceIn(pricing, "input_cache_read"),
                    .cache_write = PriceIn(pricing, "input_cache_write")};
}

bool IsModelName(const std::string& name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return !name.empty() && name.size() <= kMaxNameBytes && std::none_of(name.begin(), name.end(), is_control);
}

const Json* ListIn(const Json& root) {
  if (root.is_array()) return &root;
  for (const char* member : {"data", "models"}) {
    if (const Json& found = MemberOf(root, member); found.is_array()) return &found;
  }
  return nullptr;
}

class ListReader : public HttpResponseHandler {
 public:
  explicit ListReader(std::string api_key) : api_key_(std::move(api_key)) {}
  void OnHead(int status, const HttpHeaders& headers) override {
    status_ = status;
    headers_ = headers;
  }
  bool OnData(std::string_view bytes) override {
    body_ += bytes.substr(0, kMaxBytes + 1 - body_.size());
    return body_.size() <= kMaxBytes;
  }
  Result<std::vector<ListedModel>> Take(const Result<void>& transported) {
    if (!transported && transported.error().code == ErrorCode::kCancelled) return Fail(transported.error());
    if (!transported) return Fail(FromTransportError(transported.error(), status_ != 0));
    if (status_ < 200 || status_ >= 300)
      return Fail(MakeProviderError(ReadErrorBody(status_, body_, headers_), api_key_));
    return ReadModelList(body_);
  }

 private:
  const std::string api_key_;
  int status_ = 0;
  HttpHeaders headers_;
  std::string body_;
};

}  // namespace

Result<std::vector<ListedModel>> ReadModelList(std::string_view json) {
  const auto root = ParseJson(ToValidUtf8(json), kMaxJsonDepth, DuplicateMembers::kLastWins);
  const Json* list = root ? ListIn(*root) : nullptr;
  if (list == nullptr) return Fail(ProtocolError("The model provider's list of models is not in a known form"));
  std::vector<ListedModel> models;
  for (const Json& entry : *list) {
    if (!entry.is_object() || models.size() == kMaxModels) continue;
    const auto id = entry.contains("id") ? entry.find("id") : entry.find("name");
    if (id == entry.end() || !id->is_string() || !IsModelName(id->get_ref<const std::string&>())) continue;
    ListedModel model{.name = id->get<std::string>(),
                      .context_window = ContextWindowIn(entry),
                      .abilities = AbilitiesIn(entry),
                      .price = PriceIn(entry)};
    if (model.context_window == 0) model.context_window = ContextWindowIn(MemberOf(entry, "meta"));
    models.push_back(std::move(model));
  }
  return models;
}

void FetchModelList(Transport& transport, HttpRequest request, std::string api_key, std::stop_token stop,
                    ModelClient::Listed done) {
  const auto reader = std::make_shared<ListReader>(std::move(api_key));
  request.total_timeout = kTimeLimit;
  transport.Send(
      std::move(request), *reader, std::move(stop),
      [reader, done = std::move(done)](const Result<void>& transported) { done(reader->Take(transported)); });
}

}  // namespace reprise
