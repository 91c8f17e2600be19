#include "engine/model_questions.h"

#include <utility>

#include "agent/history.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr std::size_t kMostText = 128 * 1024;  // of one file

// The files of a question, which are not stored.
class FilesOfQuestion final : public FilesOfChat {
 public:
  explicit FilesOfQuestion(const std::vector<ModelQuestion::File>& files) : files_(files) {}

  Result<FileListing> List() override {
    FileListing listing;
    for (const auto& each : files_) listing.files.push_back(each.file.info);
    return listing;
  }
  Result<StoredFile> Get(const FileId& id) override {
    for (const auto& each : files_) {
      if (each.file.info.id == id) return each.file;
    }
    return Fail(ErrorCode::kNotFound, "there is no such file");
  }
  Result<FileInfo> Add(std::string_view, std::string_view, std::string) override { return Fixed(); }
  Result<void> Delete(const FileId&) override { return Fixed(); }

 private:
  static tl::unexpected<Error> Fixed() { return Fail(ErrorCode::kForbidden, "a question's files stay as they are"); }

  const std::vector<ModelQuestion::File>& files_;
};

// Text goes into the message, other files follow it as parts.
void AddFile(Message& message, const StoredFile& file) {
  if (auto part = PartOf(file.info, file.content)) {
    message.parts.push_back(*std::move(part));
    return;
  }
  std::string text = message.content.value_or("");
  text += (text.empty() ? "[" : "\n\n[") + file.info.filename + "]\n";
  text += IsText(file.content) ? MarkedText(file.info.id, file.content, kMostText)
                               : "(a file of the type " + file.info.mime_type + ", which cannot be shown)\n";
  message.content = std::move(text);
}

}  // namespace

// A question under way. Its client or the server can stop it.
struct ModelQuestions::UnderWay {
  UnderWay(ModelStream& stream_to, ModelClient::Done done_with, std::stop_token client)
      : stream(stream_to),
        done(std::move(done_with)),
        client_stops(std::move(client), [this] { stop.request_stop(); }) {}

  ModelStream& stream;
  ModelClient::Done done;
  Span span{};
  std::stop_source stop;
  std::stop_callback<std::function<void()>> client_stops;

  // The question.
  ModelDirectory::Resolved model{};
  ModelQuestion question{};
  Messages messages{};
  int lessons = 0;
};

Result<void> ModelQuestions::Ask(const ModelQuestion& question, ModelStream& stream, std::stop_token stop,
                                 ModelClient::Done done) {
  auto model = TRY(services_.parts.models.Resolve(question.model));
  TRY(services_.usage_limits.ForRequest());
  const auto asked = std::make_shared<UnderWay>(stream, std::move(done), std::move(stop));
  asked->span = Span::Begin(services_.parts.telemetry, "chat " + model.full_name, question.trace_parent);
  asked->model = std::move(model);
  asked->question = question;
  asked->messages = MessagesOf(asked->question, asked->model, asked->stop.get_token());
  for (const Message& message : asked->messages) {
    if (message.role == Role::kUser) TRY(services_.text_rules->guardrails.Admit(message.content.value_or("")));
  }
  TRY(Begin(asked));
  Send(asked);
  return {};
}

Messages ModelQuestions::MessagesOf(const ModelQuestion& question, const ModelDirectory::Resolved& model,
                                    const std::stop_token& stop) const {
  Messages messages = question.messages;
  for (const auto& each : question.files) {
    if (each.message < messages.size()) AddFile(messages.Change(each.message), each.file);
  }
  if (!MessageParts::HasAny(messages)) return messages;
  FilesOfQuestion files(question.files);
  const PartRecipient recipient{model.abilities, services_.options.parts, model.context_window};
  return MessageParts(&files, services_.parts.documents, recipient).Shown(messages, stop);
}

void ModelQuestions::Send(const std::shared_ptr<UnderWay>& asked) {
  FilesOfQuestion files(asked->question.files);
  const ModelRequest request{.model = asked->model.model,
                             .messages = asked->messages,
                             .tools = asked->question.tools,
                             .system = asked->question.system,
                             .traceparent = FormatTraceparent(asked->span.context()),
                             .files = &files,
                             .wishes = &asked->question.wishes};
  asked->model.client->Generate(request, asked->stream, asked->stop.get_token(),
                                [this, asked](Result<ModelResponse> response) { End(asked, std::move(response)); });
}

Result<void> ModelQuestions::Begin(const std::shared_ptr<UnderWay>& asked) {
  const MutexLock lock(mutex_);
  if (refusing_) return Fail(Stopping());
  under_way_.insert(asked);
  return {};
}

void ModelQuestions::End(const std::shared_ptr<UnderWay>& asked, Result<ModelResponse> response) {
  // A refused request has sent nothing of an answer.
  const bool was_refused = !response && IsWorthAskingAgain(response.error());
  if (was_refused && asked->lessons++ < kMostLessons) return Send(asked);
  if (response) services_.usage_limits.AddRequest(response->usage);
  if (!response) asked->span.Fail(response.error().reason);
  asked->span = Span();
  asked->done(std::move(response));
  const MutexLock lock(mutex_);
  under_way_.erase(asked);
  ended_.notify_all();
}

void ModelQuestions::Refuse() {
  const MutexLock lock(mutex_);
  refusing_ = true;
}

void ModelQuestions::Stop() {
  Refuse();
  MutexLock lock(mutex_);
  const auto all = under_way_;
  lock.unlock();
  for (const auto& asked : all) asked->stop.request_stop();
  lock.lock();
  ended_.wait(lock, [this]() REQUIRES(mutex_) { return under_way_.empty(); });
}

}  // namespace reprise
