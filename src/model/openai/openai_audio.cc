#include "model/openai/openai_audio.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/system.h"
#include "base/text.h"
#include "model/endpoint.h"
#include "model/provider_error.h"
#include "model/provider_response.h"

namespace reprise {
namespace {

constexpr std::size_t kMostUnderWay = 4;  // each holds a recording in memory
constexpr std::size_t kMaxTranscript = 1u << 20;
constexpr std::size_t kMaxType = 100, kMaxExtension = 5;
constexpr std::string_view kUsualVoice = "alloy";

// Collects a response body up to a limit.
class BodyReader final : public HttpResponseHandler {
 public:
  explicit BodyReader(std::size_t most) : most_(most) {}
  void OnHead(int status, const HttpHeaders& headers) override {
    status_ = status;
    for (const auto& [name, value] : headers) {
      if (name == "content-type") type_ = LowerCase(value);
    }
  }
  bool OnData(std::string_view bytes) override {
    body_ += bytes.substr(0, most_ + 1 - body_.size());
    return body_.size() <= most_;
  }
  Result<std::string> Take(const Result<void>& transported, const std::string& api_key) {
    if (!transported && transported.error().code == ErrorCode::kCancelled) return Fail(transported.error());
    if (!transported) return Fail(FromTransportError(transported.error(), status_ != 0));
    if (status_ < 200 || status_ >= 300) return Fail(MakeProviderError(ReadErrorBody(status_, body_), api_key));
    if (body_.size() > most_) return Fail(ProtocolError("The model provider's answer is too large"));
    return std::move(body_);
  }
  // The same for a sound. Some providers and proxies report a failure with status 200.
  Result<std::string> TakeSound(const Result<void>& transported, const std::string& api_key) {
    auto body = Take(transported, api_key);
    if (!body || IsSound(*body)) return body;
    const ProviderFault fault = ReadErrorBody(status_, *body);
    if (!fault.message.empty()) return Fail(MakeProviderError(fault, api_key));
    return Fail(ProtocolError(body->empty() ? "The model provider's answer is empty"
                                            : "The model provider's answer is no sound but text"));
  }

 private:
  bool IsSound(std::string_view body) const {
    if (body.empty() || type_.starts_with("text/") || type_.find("json") != std::string::npos) return false;
    return !type_.empty() || (body.front() != '{' && body.front() != '<');
  }

  const std::size_t most_;
  int status_ = 0;
  std::string type_;  // the content type, in lower case; empty if missing
  std::string body_;
};

// Providers take the format from the file's extension. The rest of the name is private.
std::string NameFor(const TranscriptionRequest& recording) {
  const std::size_t dot = recording.filename.rfind('.');
  std::string extension = dot == std::string::npos ? std::string() : LowerCase(recording.filename.substr(dot + 1));
  const bool usable = !extension.empty() && extension.size() <= kMaxExtension &&
                      std::all_of(extension.begin(), extension.end(), IsAsciiAlnum);
  if (!usable) extension = recording.mime_type.find("ogg") != std::string::npos ? "ogg" : "webm";
  return "audio." + extension;
}

std::string TypeFor(const TranscriptionRequest& recording) {
  const std::string& type = recording.mime_type;
  const bool usable = !type.empty() && type.size() <= kMaxType && std::all_of(type.begin(), type.end(), [](char c) {
    return IsAsciiAlnum(c) || std::string_view("!#$&^_.+-/;= ").find(c) != std::string_view::npos;
  });
  return usable ? type : "application/octet-stream";
}

// multipart/form-data (RFC 7578). The boundary cannot be guessed, so no value can contain it.
class FormBody {
 public:
  void Add(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    Begin(name).append("\r\n\r\n").append(value).append("\r\n");
  }
  void AddFile(std::string_view name, const std::string& filename, const std::string& type, std::string_view content) {
    Begin(name).append("; filename=\"").append(filename).append("\"\r\nContent-Type: ").append(type);
    body_.append("\r\n\r\n").append(content).append("\r\n");
  }
  std::string content_type() const { return "multipart/form-data; boundary=" + boundary_; }
  std::string Take() {
    body_.append("--").append(boundary_).append("--\r\n");
    return std::move(body_);
  }

 private:
  std::string& Begin(std::string_view name) {
    body_.append("--").append(boundary_).append("\r\nContent-Disposition: form-data; name=\"").append(name);
    return body_.append("\"");
  }

  const std::string boundary_ = "reprise-" + RandomHex(16);
  std::string body_;
};

Result<std::string> TextIn(const std::string& body) {
  const auto json = ParseJson(ToValidUtf8(body), kMaxJsonDepth, DuplicateMembers::kLastWins);
  const auto text = json && json->is_object() ? json->find("text") : Json::const_iterator();
  if (!json || !json->is_object() || text == json->end() || !text->is_string()) {
    return Fail(ProtocolError("The model provider's transcription is not in a known form"));
  }
  return text->get<std::string>();
}

}  // namespace

OpenAiAudio::OpenAiAudio(Transport& transport, OpenAiAudioOptions options)
    : transport_(transport), options_(std::move(options)) {}

OpenAiAudio::~OpenAiAudio() {
  stop_.request_stop();
  MutexLock lock(mutex_);
  ended_.wait(lock, [this]() REQUIRES(mutex_) { return under_way_ == 0; });
}

Result<OpenAiAudio::Target> OpenAiAudio::Find(const std::string& asked, const std::string& configured,
                                              std::string_view setting) const {
  if (configured.empty()) {
    return Fail(Reason::kNotConfigured, "this server has no model for it: \"" + std::string(setting) +
                                            "\" in its configuration names one, as PROVIDER/MODEL");
  }
  const std::string& name = asked.empty() ? configured : asked;
  const std::size_t slash = name.find('/');
  const auto provider = options_.providers.find(std::string_view(name).substr(0, slash));
  if (slash == std::string::npos || slash + 1 == name.size() || provider == options_.providers.end()) {
    return Fail(Reason::kUnknownModel,
                "\"" + std::string(Utf8Prefix(name, 80)) + "\" is not PROVIDER/MODEL of a provider of the type openai");
  }
  return Target{&provider->second, name.substr(slash + 1)};
}

Result<void> OpenAiAudio::Begin() {
  const MutexLock lock(mutex_);
  if (under_way_ == kMostUnderWay) {
    return Fail(Reason::kOverloaded, "so much is spoken and listened to already; try again");
  }
  ++under_way_;
  return {};
}

void OpenAiAudio::End() {
  const MutexLock lock(mutex_);
  --under_way_;
  ended_.notify_all();  // with the lock held: the waiting destructor deletes this object
}

void OpenAiAudio::Send(const Target& target, std::string_view path, std::string content_type, std::string body,
                       Wanted wanted, std::stop_token stop, Done done) {
  if (auto begun = Begin(); !begun) return done(Fail(std::move(begun.error())));
  const OpenAiOptions& provider = *target.provider;
  HttpRequest http;
  http.method = "POST";
  http.url = UrlOf(provider.base_url, path, provider.additions);
  if (!provider.api_key.empty()) http.headers.emplace_back("Authorization", "Bearer " + provider.api_key);
  http.headers.emplace_back("Content-Type", std::move(content_type));
  AddHeaders(http, provider.additions);
  http.body = std::move(body);
  http.connect_timeout = provider.connect_timeout;
  http.idle_timeout = provider.idle_timeout;
  // Stopped by its caller's token or together with all others.
  struct UnderWay {
    explicit UnderWay(std::size_t most) : reader(most) {}
    BodyReader reader;
    std::stop_source stop;
    std::optional<std::stop_callback<std::function<void()>>> on_stop, on_end;
  };
  const auto request = std::make_shared<UnderWay>(wanted == Wanted::kSound ? kMaxAudioBytes : kMaxTranscript);
  const auto request_stop = [source = request->stop]() mutable { source.request_stop(); };
  request->on_stop.emplace(std::move(stop), request_stop);
  request->on_end.emplace(stop_.get_token(), request_stop);
  transport_.Send(std::move(http), request->reader, request->stop.get_token(),
                  [this, request, &provider, wanted, done = std::move(done)](const Result<void>& transported) {
                    BodyReader& reader = request->reader;
                    done(wanted == Wanted::kSound ? reader.TakeSound(transported, provider.api_key)
                                                  : reader.Take(transported, provider.api_key));
                    End();
                  });
}

void OpenAiAudio::Transcribe(TranscriptionRequest request, std::stop_token stop, Done done) {
  const auto target = Find(request.model, options_.transcription_model, "audio.transcription");
  if (!target) return done(Fail(target.error()));
  FormBody form;
  form.Add("model", target->model);
  form.Add("response_format", "json");
  form.Add("language", request.language);
  form.Add("prompt", request.prompt);
  form.AddFile("file", NameFor(request), TypeFor(request), request.content);
  std::string().swap(request.content);
  std::string type = form.content_type();
  Send(*target, "/audio/transcriptions", std::move(type), form.Take(), Wanted::kText, std::move(stop),
       [done = std::move(done)](Result<std::string> body) {
         done(body ? TextIn(*body) : Result<std::string>(Fail(std::move(body.error()))));
       });
}

void OpenAiAudio::Speak(SpeechRequest request, std::stop_token stop, Done done) {
  const auto target = Find(request.model, options_.speech_model, "audio.speech");
  if (!target) return done(Fail(target.error()));
  std::string voice = std::move(request.voice);
  if (voice.empty()) voice = options_.voice.empty() ? std::string(kUsualVoice) : options_.voice;
  const Json body = {{"model", target->model},
                     {"input", std::move(request.text)},
                     {"voice", std::move(voice)},
                     {"response_format", request.format}};
  Send(*target, "/audio/speech", "application/json", DumpJson(body), Wanted::kSound, std::move(stop), std::move(done));
}

}  // namespace reprise
