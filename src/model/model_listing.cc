#include "model/model_listing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "model/provider_error.h"
#include "model/response_reader.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxBytes = 8u << 20;  // the largest router's list has half a megabyte
constexpr std::chrono::seconds kTimeLimit{30};
constexpr std::size_t kMaxModels = 5000;
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::int64_t kMaxContextWindow = 1'000'000'000;

// vLLM, OpenRouter, Groq, LM Studio, Mistral, Anthropic, llama.cpp (in "meta"). What is loaded counts more than what
// the model was trained for.
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
    ListedModel model{.name = id->get<std::string>(), .context_window = ContextWindowIn(entry)};
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
