#include "model/model_listing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"
#include "model/failure_words.h"
#include "model/provider_error.h"
#include "model/response_reader.h"

namespace reprise {
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
    const auto found = object.find(member);
    if (found == object.end() || !found->is_number_unsigned()) continue;
    const auto tokens = found->get<std::uint64_t>();
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
  const auto list = holder.find(member);
  if (list == holder.end() || !list->is_array()) return;
  for (const AbilityWord& known : words) {
    if (is_whole && !(abilities.*known.member)) abilities.*known.member = false;
  }
  for (const Json& word : *list) {
    if (!word.is_string()) continue;
    for (const AbilityWord& known : words) {
      if (word.get_ref<const std::string&>() == known.word) abilities.*known.member = true;
    }
  }
}

// Members that are true or false, or {"supported": ...}.
void ReadFlags(const Json& object, ModelAbilities& abilities) {
  for (const AbilityWord& known : kCapabilities) {
    auto value = object.find(known.word);
    if (value == object.end()) continue;
    const bool is_nested = value->is_object() && value->contains("supported");
    const Json& flag = is_nested ? (*value)["supported"] : *value;
    if (flag.is_boolean()) abilities.*known.member = flag.get<bool>();
  }
}

ModelAbilities AbilitiesIn(const Json& entry) {
  ModelAbilities abilities;
  ReadFlags(entry, abilities);
  if (const auto own = entry.find("capabilities"); own != entry.end() && own->is_object()) ReadFlags(*own, abilities);
  ReadWords(entry, "capabilities", kCapabilities, /*is_whole=*/false, abilities);
  ReadWords(entry, "supported_parameters", kParameters, /*is_whole=*/true, abilities);
  ReadWords(entry, "supported_features", kParameters, /*is_whole=*/true, abilities);
  const auto architecture = entry.find("architecture");
  const bool has_architecture = architecture != entry.end() && architecture->is_object();
  ReadWords(has_architecture ? *architecture : entry, "input_modalities", kModalities, /*is_whole=*/true, abilities);
  return abilities;
}

// --- what it costs ---------------------------------------------------------------------------------------------------

// The price of one token, as OpenRouter writes it: "0.0000025". nullopt: unknown, or variable ("-1").
std::optional<double> PriceIn(const Json& pricing, const char* member) {
  const auto found = pricing.find(member);
  if (found == pricing.end() || !found->is_string()) return std::nullopt;
  constexpr double kTokensPerPrice = 1e6, kMost = 1e9;
  const auto text = ParseNumber<double>(found->get_ref<const std::string&>());
  if (!text) return std::nullopt;
  const double price = *text * kTokensPerPrice;
  if (!(price >= 0 && price <= kMost)) return std::nullopt;
  constexpr double kLeastDigit = 1e6;  // rounds to readable values, not 0.15000000000000002
  return std::round(price * kLeastDigit) / kLeastDigit;
}

std::optional<ModelPrice> PriceIn(const Json& entry) {
  const auto pricing = entry.find("pricing");
  if (pricing == entry.end() || !pricing->is_object()) return std::nullopt;
  const auto input = PriceIn(*pricing, "prompt"), output = PriceIn(*pricing, "completion");
  if (!input || !output) return std::nullopt;
  return ModelPrice{.input = *input,
                    .output = *output,
                    .cache_read = PriceIn(*pricing, "input_cache_read"),
                    .cache_write = PriceIn(*pricing, "input_cache_write")};
}

bool IsModelName(const std::string& name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return !name.empty() && name.size() <= kMaxNameBytes && std::none_of(name.begin(), name.end(), is_control);
}

const Json* ListIn(const Json& root) {
  if (root.is_array()) return &root;
  if (!root.is_object()) return nullptr;
  for (const char* member : {"data", "models"}) {
    const auto found = root.find(member);
    if (found != root.end() && found->is_array()) return &*found;
  }
  return nullptr;
}

class ListReader : public HttpResponseHandler {
 public:
  explicit ListReader(std::string api_key) : api_key_(std::move(api_key)) {}
  void OnHead(int status, const HttpHeaders&) override { status_ = status; }
  bool OnData(std::string_view bytes) override {
    body_ += bytes.substr(0, kMaxBytes + 1 - body_.size());
    return body_.size() <= kMaxBytes;
  }
  Result<std::vector<ListedModel>> Take(const Result<void>& transported) {
    if (!transported && transported.error().code == ErrorCode::kCancelled) return Fail(transported.error());
    if (!transported) return Fail(FromTransportError(transported.error(), status_ != 0));
    if (status_ < 200 || status_ >= 300) return Fail(MakeProviderError(ReadErrorBody(status_, body_), api_key_));
    return ReadModelList(body_);
  }

 private:
  const std::string api_key_;
  int status_ = 0;
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
    const auto meta = entry.find("meta");
    if (model.context_window == 0 && meta != entry.end() && meta->is_object()) {
      model.context_window = ContextWindowIn(*meta);
    }
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
