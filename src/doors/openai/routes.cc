#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "agent/context.h"
#include "base/json.h"
#include "base/system.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "doors/audio.h"
#include "doors/door.h"
#include "doors/openai/answer_writer.h"
#include "doors/openai/request.h"
#include "doors/openai/request_notes.h"
#include "doors/translator.h"
#include "reprise/engine.h"
#include "reprise/event_log.h"
#include "reprise/model_client.h"
#include "wire/error_response.h"
#include "wire/multipart.h"
#include "wire/request_values.h"

namespace reprise::openai {
namespace {

constexpr std::uint64_t kMostWaitingForClient = 8 * 1024 * 1024;

// Passes on the answer of a model alone while it is made. Nothing of it is kept.
class ModelAnswer final : public ModelStream, public std::enable_shared_from_this<ModelAnswer> {
 public:
  ModelAnswer(const OpenAiRequest& request, std::unique_ptr<AnswerWriter> writer)
      : stream_(request.stream), writer_(std::move(writer)) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    writer_->Begin({.name = RandomHex(12), .created = std::chrono::duration_cast<std::chrono::seconds>(now).count()},
                   out_);
  }

  // Asks the model. Fails like Engine::Ask and MakeFile; later failures are in the answer.
  Result<void> Begin(Engine& engine, const OpenAiRequest& request, const TraceContext& trace_parent) {
    ModelQuestion question{.model = request.model,
                           .system = request.instructions,
                           .messages = request.messages,
                           .tools = request.tools,
                           .wishes = request.wishes,
                           .trace_parent = trace_parent};
    for (const auto& [message, file] : request.message_files) {
      auto made = TRY(MakeFile(file.filename, file.mime_type, file.content));
      question.files.push_back({message, std::move(made)});
    }
    if (stream_) Send();
    return engine.Ask(question, *this, stop_.get_token(), [self = shared_from_this()](Result<ModelResponse> response) {
      self->OnDone(std::move(response));
    });
  }
  // Called when the client is gone.
  void Stop() { stop_.request_stop(); }

  // The stream for the client, if it wants one; closed when the answer has ended.
  const std::shared_ptr<EventLog>& log() const { return log_; }
  // The answer as one object, or the failure. REQUIRES: the log is closed.
  Result<std::string> Whole() {
    if (failure_) return Fail(*failure_);
    return std::move(out_);
  }

  void OnThinking(std::string_view delta) override { writer_->Thinking(Escaped(delta), out_); }
  void OnText(std::string_view delta) override { writer_->Text(Escaped(delta), out_); }
  void OnRefusal(std::string_view delta) override { writer_->Refusal(Escaped(delta), out_); }
  void OnBatchEnd() override { Send(); }

 private:
  void OnDone(Result<ModelResponse> response) {
    AnswerEnd end;
    if (response) {
      for (const ToolCall& call : response->tool_calls) writer_->Call(call, out_);
      end.usage = response->usage;
      end.truncated = response->truncated;
    } else {
      failure_ = response.error();
      end.status = InteractionStatus::kFailed;
      end.failure = AnswerFailure{failure_->reason, failure_->message, failure_->retryable};
    }
    writer_->End(end, out_);
    if (stream_) Send();
    log_->Close();
  }
  void Send() {
    if (!stream_ || out_.empty()) return;
    log_->AppendFrames(out_);
    out_.clear();
    log_->Publish();
    if (log_->kept_bytes() > kMostWaitingForClient) stop_.request_stop();
  }

  const bool stream_;
  const std::unique_ptr<AnswerWriter> writer_;
  const std::shared_ptr<EventLog> log_ = std::make_shared<EventLog>();
  std::stop_source stop_;
  std::string out_;
  std::optional<Error> failure_;
};

using MakeWriter = std::unique_ptr<AnswerWriter> (*)(const OpenAiRequest&);

// Adds the members that clients of OpenAI's interfaces expect in an error: "type" and "param".
void AddOpenAiMembers(Reply& reply) {
  auto body = ParseJson(reply.body);
  if (!body || !MemberOf(*body, "error").is_object()) return;
  Json& error = (*body)["error"];
  const int status = reply.status;
  const char* type = status == 401   ? "authentication_error"
                     : status == 403 ? "permission_error"
                     : status == 429 ? "rate_limit_error"
                     : status < 500  ? "invalid_request_error"
                                     : "server_error";
  if (!error.contains("type")) error["type"] = type;
  const std::string param = TextMember(MemberOf(error, "details"), "param");
  error["param"] = param.empty() ? Json(nullptr) : Json(param);
  reply.body = DumpJson(*body);
}

// The chat that a front end names, in a header or else in the request.
std::optional<ChatId> ChatOf(const Request& request, const OpenAiRequest& asked) {
  for (const char* name : {"x-chat-id", "x-openwebui-chat-id", "x-conversation-id"}) {
    const std::string* value = request.head.Find(name);
    if (value == nullptr) continue;
    if (auto chat = ChatNamed(*value)) return chat;
  }
  return asked.chat_name ? ChatNamed(*asked.chat_name) : std::nullopt;
}

// For a header, because a client may have written anything.
std::string Joined(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) {
    joined += joined.empty() ? "" : ", ";
    for (const char c : name) joined += c > ' ' && c < 0x7f ? c : '?';
  }
  return joined;
}

// Names what of the request has no effect.
HeaderList LeftOut(const OpenAiRequest& asked) {
  HeaderList headers;
  if (!asked.left_out_tools.empty()) headers.emplace_back("X-Left-Out-Tools", Joined(asked.left_out_tools));
  if (!asked.left_out_members.empty()) headers.emplace_back("X-Left-Out-Parameters", Joined(asked.left_out_members));
  return headers;
}

// The interaction's response: as it is now, or with `asked.stream` from its beginning.
Result<Outcome> ResponseOf(const Door& door, const Request& request, const Interaction& interaction,
                           OpenAiRequest asked) {
  const std::string page = door.PageAddress(request);
  if (!asked.stream) return Reply{.body = TRY(ResponseText(door.engine, interaction, std::move(asked), page))};
  auto attached = TRY(door.engine.Attach(interaction.chat_id, interaction.id, 0));
  asked.is_record = IsFinished(attached.status);
  auto translator = std::make_unique<AgentTranslator>(
      MakeResponseWriter(asked),
      AgentTranslator::Options{
          .page = page, .created_at = interaction.created_at, .completed_at = interaction.completed_at});
  door.engine.Listen(attached.subscription);
  return StreamOf(Translate(std::move(attached.subscription), std::move(translator)), {});
}

Error NoSuchResponse() {
  return ParamError(ErrorCode::kNotFound, "previous_response_not_found", "there is no such response",
                    "previous_response_id");
}

Result<Outcome> Refusal(Error error) {
  if (error.Is(Reason::kUnknownModel)) return ProtocolErrorReply(404, "model_not_found", error.message);
  return Fail(std::move(error));
}

// The route of one of the two interfaces.
class AnswerRoute {
 public:
  // `notes` is null if the answers are not responses.
  AnswerRoute(const Door& door, MakeWriter make_writer, std::shared_ptr<RequestNotes> notes)
      : door_(door), make_writer_(make_writer), notes_(std::move(notes)) {}

  Result<Outcome> Answer(const Request& request, OpenAiRequest asked) const {
    return asked.is_agent ? AskAgent(request, std::move(asked)) : AskModel(request, std::move(asked));
  }

 private:
  // Notes the wishes that the model's provider does not grant. Without a format or a forced call the answer would be of
  // another form than the client reads, so these are refused.
  Result<void> CheckWishes(OpenAiRequest& asked) const {
    const auto model = TRY(door_.engine.models().Resolve(asked.model));
    for (const Wish wish : model.client->LeftOut(model.model, asked.wishes)) {
      const std::string name(NameOf(wish, asked.interface));
      if (wish == Wish::kFormat || wish == Wish::kForcedCall) {
        return Fail(Invalid("unsupported_value", "this model does not support \"" + name + "\" with this value", name));
      }
      asked.left_out_members.push_back(name);
      // A response tells what was heeded.
      if (wish == Wish::kTemperature) asked.wishes.temperature.reset();
      if (wish == Wish::kTopP) asked.wishes.top_p.reset();
      if (wish == Wish::kMaxOutputTokens) asked.wishes.max_output_tokens = 0;
    }
    return {};
  }

  Result<Outcome> AskModel(const Request& request, OpenAiRequest asked) const {
    if (auto checked = CheckWishes(asked); !checked) return Refusal(std::move(checked.error()));
    const auto answer = std::make_shared<ModelAnswer>(asked, make_writer_(asked));
    if (auto begun = answer->Begin(door_.engine, asked, TraceParentOf(request)); !begun) {
      return Refusal(std::move(begun.error()));
    }
    HeaderList headers = LeftOut(asked);
    std::shared_ptr<void> hold(nullptr, [answer](void*) { answer->Stop(); });
    if (asked.stream)
      return StreamReply{.log = answer->log(), .hold = std::move(hold), .headers = std::move(headers), .forgets = true};
    return DeferredReply{.log = answer->log(), .hold = std::move(hold), .finish = [answer, headers]() -> Result<Reply> {
                           auto whole = answer->Whole();
                           if (whole) return Reply{.body = *std::move(whole), .headers = headers};
                           return ProviderFailed(std::move(whole.error()));
                         }};
  }

  // A client may repeat a question to a model alone, unless it would fail again, for example because the key is
  // refused. No client library retries a 400.
  static Reply ProviderFailed(Error error) {
    const bool would_fail_again = error.reason.starts_with("provider_") && !error.retryable;
    error.code = would_fail_again ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable;
    return ErrorReply(error);
  }

  Result<Outcome> AskAgent(const Request& request, OpenAiRequest asked) const {
    asked.conversation.chat = ChatOf(request, asked);
    const auto key = TRY(ForeignRequestOf(request, /*is_whole=*/!asked.stream));
    if (!key.is_unnamed() && !asked.conversation.chat && asked.conversation.before.empty() &&
        !asked.previous_response_id) {
      // A repeated request must find this chat again.
      constexpr std::size_t kFrom = 7, kDigits = 24;  // after "sha256:"
      asked.conversation.chat = ChatNamed("key_" + Sha256Digest({key.key}).substr(kFrom, kDigits));
    }
    StartRequest start{.model = asked.model,
                       .on_disconnect = asked.background ? OnDisconnect::kContinue : OnDisconnect::kCancel,
                       .instructions = InstructionsFor(asked.conversation, asked.instructions),
                       .request = key,
                       .trace_parent = TraceParentOf(request)};
    TRY(door_.TakeHeaders(request, start, asked.conversation));
    const bool is_named = asked.conversation.chat.has_value();
    auto started = door_.Begin([&] { return Find(asked); }, is_named, asked.files, start);
    if (!started) return Refusal(std::move(started.error()));
    return Follow(request, asked, *std::move(started));
  }

  Result<ConversationPlan> Find(const OpenAiRequest& asked) const {
    if (asked.previous_response_id) {
      const auto last = ParseResponseId(*asked.previous_response_id);
      auto plan = last ? door_.conversations->FindAfter(*last, asked.conversation) : Fail(NoSuchResponse());
      if (!plan && IsNotFound(plan.error())) return Fail(NoSuchResponse());
      return plan;
    }
    if (!asked.continues) return door_.conversations->Find(asked.conversation);
    return door_.conversations->AtEndOf(asked.conversation.chat.value_or(ChatId::Random()), asked.conversation);
  }

  AgentTranslator::Options OptionsFor(const Request& request, const OpenAiRequest& asked, bool is_repeated,
                                      std::weak_ptr<void> client) const {
    AgentTranslator::Options options{.page = door_.PageAddress(request),
                                     .is_repeated = is_repeated,
                                     .began = [conversations = door_.conversations, client = std::move(client),
                                               in_background = asked.background](const InteractionRef& run) {
                                       if (!in_background)
                                         conversations->NoteClient(run.chat_id, run.interaction_id, client);
                                     }};
    // New messages alone are no conversation that another client could continue.
    if (asked.continues || asked.previous_response_id) return options;
    options.ended = [conversations = door_.conversations, conversation = asked.conversation](
                        const InteractionRef& run, const std::string& spoken_digest) {
      conversations->NoteEnd(conversation, spoken_digest, run);
    };
    return options;
  }

  Result<Outcome> Follow(const Request& request, const OpenAiRequest& asked, EventSubscription started) const {
    door_.engine.Listen(started);  // a repeated request gets the run that it began before
    HeaderList headers = EventsLocation(started);
    headers.insert(headers.begin(), {"X-Chat-Id", started.chat_id.str()});
    for (auto& header : LeftOut(asked)) headers.push_back(std::move(header));
    if (started.interaction_id && notes_) notes_->Note({started.chat_id, *started.interaction_id}, asked);
    const auto client = std::make_shared<char>();
    auto translator = std::make_unique<AgentTranslator>(
        make_writer_(asked), OptionsFor(request, asked, started.is_repeated, std::weak_ptr<void>(client)));
    if (asked.background && !asked.stream && started.interaction_id) {
      const auto begun = TRY(door_.engine.GetInteraction(started.chat_id, *started.interaction_id));
      return ResponseOf(door_, request, begun, asked);
    }
    if (asked.stream) {
      return StreamOf(Translate(std::move(started), std::move(translator)), std::move(headers), client);
    }
    const auto log = started.log;
    const auto hold = std::make_shared<EventSubscription>(std::move(started));
    if (hold->interaction_id) door_.conversations->NoteClient(hold->chat_id, *hold->interaction_id, hold);
    const std::shared_ptr<AgentTranslator> shared = std::move(translator);
    return DeferredReply{.log = log, .hold = hold, .finish = [log, shared, headers]() -> Result<Reply> {
                           return Whole(*log, *shared, headers);
                         }};
  }

  // The answer of a run that has ended, from its log.
  static Reply Whole(const EventLog& log, AgentTranslator& translator, const HeaderList& headers) {
    std::string out;
    bool complete = false;
    EachEvent(log, [&](const EventFrame& event) {
      complete = complete || event.name == event::InteractionComplete::kName;
      translator.Take(event, out);
    });
    translator.End(complete, out);
    Reply reply{.body = std::move(out)};
    if (const auto& failure = translator.end().failure) {
      // The agent has run, and the effects of its tools remain. No client library retries a 400.
      reply = complete ? Reply{.status = 400, .body = "{\"error\":" + OpenAiErrorObject(*failure) + "}"}
                       : ProtocolErrorReply(503, failure->code, failure->message);
    }
    reply.headers.insert(reply.headers.end(), headers.begin(), headers.end());
    return reply;
  }

  const Door door_;
  const MakeWriter make_writer_;
  const std::shared_ptr<RequestNotes> notes_;
};

// --- existing responses ----------------------------------------------------------------------------------------------

// The value of ?starting_after=: the sequence_number of the last event that a client has of a stream.
Result<std::optional<std::uint64_t>> StreamCursor(const Request& request) {
  const auto text = request.Query("starting_after");
  if (!text) return std::nullopt;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 53;  // JSON numbers below this are exact everywhere
  if (const auto number = ParseNumber<std::uint64_t>(*text); number && *number < kMost) return *number;
  return Fail(Reason::kInvalidParameter, "\"starting_after\" must be the sequence_number of an event");
}

struct ResponseRoute {
  Door door;
  std::shared_ptr<RequestNotes> notes;
};

Result<Outcome> ShowResponse(const ResponseRoute& route, const Request& request, bool stream) {
  const Door& door = route.door;
  const auto ref = TRY(ResponseInPath(request));
  const auto interaction = TRY(door.engine.GetInteraction(ref.chat_id, ref.interaction_id));
  OpenAiRequest asked{.is_agent = true, .asked_model = "reprise/" + interaction.model, .stream = stream};
  route.notes->Recall(ref, asked);
  if (interaction.parent_id) asked.previous_response_id = ResponseId({ref.chat_id, *interaction.parent_id});
  if (stream) asked.starting_after = TRY(StreamCursor(request));
  return ResponseOf(door, request, interaction, std::move(asked));
}

Result<Outcome> GetResponse(const ResponseRoute& route, const Request& request) {
  const std::string stream = request.Query("stream").value_or("false");
  if (stream == "true" || stream == "false") return ShowResponse(route, request, stream == "true");
  return Fail(Invalid("invalid_parameter", "\"stream\" must be true or false", "stream"));
}

Result<Outcome> CancelResponse(const ResponseRoute& route, const Request& request) {
  const auto ref = TRY(ResponseInPath(request));
  TRY(route.door.engine.Cancel(ref.chat_id, ref.interaction_id));
  return ShowResponse(route, request, /*stream=*/false);
}

Result<Outcome> DeleteResponse(Engine& engine, const Request& request) {
  const auto ref = TRY(ResponseInPath(request));
  TRY(engine.RemoveBranch(ref.chat_id, ref.interaction_id));
  return JsonReply({{"id", request.captures.at(0)}, {"object", "response"}, {"deleted", true}});
}

// The number of tokens that a model would get. Asks no provider: it is the estimate, on the safe side and of text
// alone, that keeps a chat within its model's window.
Result<Outcome> CountInputTokens(Engine& engine, const Request& request) {
  const auto asked = TRY(ParseResponse(request.body));
  std::vector<Message> messages = asked.messages;
  if (!asked.instructions.empty()) messages.push_back({.role = Role::kSystem, .content = asked.instructions});
  std::int64_t tokens = EstimateTokens(asked.is_agent ? engine.tools().Current()->specs() : asked.tools);
  std::optional<ChatId> chat;
  std::optional<InteractionId> last;
  if (asked.previous_response_id) {
    const auto ref = ParseResponseId(*asked.previous_response_id);
    if (!ref) return Fail(NoSuchResponse());
    chat = ref->chat_id;
    last = ref->interaction_id;
  } else if (asked.continues && (chat = ChatNamed(*asked.chat_name))) {
    if (const auto entry = engine.GetListEntry(*chat)) last = entry->summary.head;
  }
  if (last) {
    const auto before = TRY(engine.GetInteraction(*chat, *last));
    if (before.final_agent_state) {
      const auto& told = before.final_agent_state->messages;
      messages.insert(messages.end(), told.begin(), told.end());
    }
  }
  for (const ForeignTurn& turn : asked.conversation.before) {
    messages.push_back({.role = Role::kUser, .content = turn.user});
    messages.push_back({.role = Role::kAssistant, .content = turn.answer});
  }
  if (asked.is_agent) messages.push_back({.role = Role::kUser, .content = asked.conversation.message});
  for (const Message& message : messages) tokens += EstimateTokens(message);
  return JsonReply({{"object", "response.input_tokens"}, {"input_tokens", tokens}});
}

// --- models ----------------------------------------------------------------------------------------------------------

std::vector<std::string> ModelNames(const Engine& engine) {
  std::vector<std::string> names{"reprise"};
  const auto models = engine.models().List();
  for (const auto& model : models) names.push_back("reprise/" + model.name);
  for (const auto& model : models) names.push_back(model.name);
  return names;
}

Json ModelObject(const std::string& name) {
  const bool is_agent = name == "reprise" || name.starts_with("reprise/");
  const std::size_t slash = name.find('/');
  return {{"id", name},
          {"object", "model"},
          {"created", 0},
          {"owned_by", is_agent || slash == std::string::npos ? "reprise" : name.substr(0, slash)}};
}

Result<Outcome> ListModels(Engine& engine, const Request& /*request*/) {
  Json data = Json::array();
  for (const std::string& name : ModelNames(engine)) data.push_back(ModelObject(name));
  return JsonReply({{"object", "list"}, {"data", std::move(data)}});
}

Result<Outcome> GetModel(Engine& engine, const Request& request) {
  const auto names = ModelNames(engine);
  const std::string& name = request.captures.at(0);
  if (std::find(names.begin(), names.end(), name) != names.end()) return JsonReply(ModelObject(name));
  return ProtocolErrorReply(404, "model_not_found", "there is no such model; GET /v1/models lists them");
}

// --- audio -----------------------------------------------------------------------------------------------------------

// Clients send the name of one of OpenAI's models where ours is configured. A name without a provider means nothing to
// us.
std::string AudioModel(const std::string& name) { return name.find('/') == std::string::npos ? std::string() : name; }

Reply TranscriptionReply(const std::string& text, const std::string& format, bool stream) {
  if (stream) {
    return Reply{
        .body =
            "data: " + DumpJson({{"type", "transcript.text.delta"}, {"delta", text}, {"logprobs", Json::array()}}) +
            "\n\ndata: " + DumpJson({{"type", "transcript.text.done"}, {"text", text}, {"logprobs", Json::array()}}) +
            "\n\ndata: [DONE]\n\n",
        .content_type = "text/event-stream"};
  }
  if (format == "text") return Reply{.body = text + "\n", .content_type = "text/plain; charset=utf-8"};
  return JsonReply({{"text", text}});
}

Result<Outcome> Transcribe(Engine& engine, const Request& request) {
  auto form = TRY(ReadForm(request, {"model", "language", "prompt", "response_format", "stream", "temperature",
                                     "timestamp_granularities[]", "include[]", "chunking_strategy"}));
  const std::string format = form.fields["response_format"];
  if (!format.empty() && format != "json" && format != "text") {
    return Fail(Invalid("unsupported_value", "\"response_format\" must be json or text", "response_format"));
  }
  const bool stream = form.fields["stream"] == "true";
  TranscriptionRequest speech = TranscriptionIn(std::move(form));
  speech.model = AudioModel(speech.model);
  return AwaitTranscription(engine, std::move(speech), [format, stream](const std::string& text) {
    return TranscriptionReply(text, format, stream);
  });
}

Result<Outcome> Speak(Engine& engine, const Request& request) {
  const Json body = TRY(ParseJson(request.body.empty() ? "{}" : request.body));
  for (const char* name : {"model", "response_format"}) {
    if (const Json& value = MemberOf(body, name); !value.is_null() && !value.is_string()) {
      return Fail(Invalid("invalid_member", "\"" + std::string(name) + "\" must be a string", name));
    }
  }
  if (!MemberOf(body, "input").is_string() || TextMember(body, "input").empty()) {
    return Fail(Invalid("missing_required_parameter", "\"input\" must be the text that is to be spoken", "input"));
  }
  const Json& voice = MemberOf(body, "voice");
  if (!voice.is_null() && !voice.is_string() && !voice.is_object()) {
    return Fail(Invalid("invalid_member", "\"voice\" must be a string", "voice"));
  }
  const auto* format = kSpeechFormats.begin();
  if (const Json& wanted = MemberOf(body, "response_format"); wanted.is_string()) {
    format = std::find_if(kSpeechFormats.begin(), kSpeechFormats.end(),
                          [&](const SpeechFormat& known) { return wanted == known.name; });
  }
  if (format == kSpeechFormats.end()) {
    return Fail(
        Invalid("unsupported_value", "\"response_format\" must be mp3, opus, aac, flac or wav", "response_format"));
  }
  return AwaitSpeech(engine,
                     {.text = TextMember(body, "input"),
                      .voice = voice.is_object() ? TextMember(voice, "id") : TextMember(body, "voice"),
                      .model = AudioModel(TextMember(body, "model"))},
                     *format);
}

}  // namespace

void AddRoutes(Router& router, const Door& door) {
  const auto with = HandlersOf(door.engine);
  const auto answer = [](AnswerRoute route, Result<OpenAiRequest> (*parse)(std::string_view)) -> Handler {
    return [route = std::move(route), parse](const Request& request) -> Result<Outcome> {
      return route.Answer(request, TRY(parse(request.body)));
    };
  };
  router.SetErrorForm("/v1/", AddOpenAiMembers);
  const auto notes = std::make_shared<RequestNotes>();
  router.Add("POST", "/v1/chat/completions", answer({door, MakeChatCompletionWriter, nullptr}, ParseChatCompletion),
             Lane::kWork, BodyKind::kConversation);
  router.Add("POST", "/v1/responses", answer({door, MakeResponseWriter, notes}, ParseResponse), Lane::kWork,
             BodyKind::kConversation);
  const auto with_notes =
      [route = ResponseRoute{door, notes}](Result<Outcome> (*handler)(const ResponseRoute&, const Request&)) {
        return [route, handler](const Request& request) { return handler(route, request); };
      };
  router.Add("POST", "/v1/responses/input_tokens", with(CountInputTokens), Lane::kWork, BodyKind::kConversation);
  AddConversationRoutes(router, door, notes);
  router.Add("GET", "/v1/responses/*", with_notes(GetResponse));
  router.Add("DELETE", "/v1/responses/*", with(DeleteResponse));
  router.Add("POST", "/v1/responses/*/cancel", with_notes(CancelResponse), Lane::kControl);
  router.Add("GET", "/v1/models", with(ListModels), Lane::kRemote);
  router.Add("GET", "/v1/models/**", with(GetModel), Lane::kRemote);
  router.Add("POST", "/v1/audio/transcriptions", with(Transcribe), Lane::kWork, BodyKind::kAudio);
  router.Add("POST", "/v1/audio/speech", with(Speak));
}

}  // namespace reprise::openai
