#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "doors/openai/answer_writer.h"

namespace reprise::openai {
namespace {

// {"type":"json_schema",...}
std::string FormatJson(const ModelWishes& wishes) {
  if (wishes.format == ModelWishes::Format::kText) return R"({"type":"text"})";
  if (wishes.format == ModelWishes::Format::kJson) return R"({"type":"json_object"})";
  std::string out;
  AppendJsonObject(out, [&](JsonObjectWriter& json) {
    json["type"] = std::string_view("json_schema");
    json["name"] = wishes.schema_name;
    json.Name("schema") += wishes.schema;
    json["strict"] = wishes.strict;
  });
  return out;
}

std::string ToolsJson(const OpenAiRequest& request) {
  std::string out = "[";
  for (const std::string& each : request.namespaces) out.append(out.size() > 1 ? "," : "").append(each);
  for (const ToolSpec& tool : request.tools) {
    if (request.namespaced.contains(tool.name)) continue;
    if (out.size() > 1) out += ',';
    AppendJsonObject(out, [&](JsonObjectWriter& json) {
      json["type"] = std::string_view("function");
      json["name"] = tool.name;
      json["description"] = tool.description;
      json.Name("parameters") += tool.parameters;
      json["strict"] = tool.strict;
    });
  }
  return out + "]";
}

std::string ResponseUsage(const TokenUsage& usage) {
  std::string out;
  AppendJsonObject(out, [&](JsonObjectWriter& json) {
    json["input_tokens"] = usage.input_tokens;
    AppendJsonObject(json.Name("input_tokens_details"),
                     [&](JsonObjectWriter& details) { details["cached_tokens"] = usage.cache_read_tokens; });
    json["output_tokens"] = usage.output_tokens;
    AppendJsonObject(json.Name("output_tokens_details"),
                     [](JsonObjectWriter& details) { details["reasoning_tokens"] = 0; });
    json["total_tokens"] = usage.input_tokens + usage.output_tokens;
  });
  return out;
}

// Items of the output follow one another; each is open until one of another kind begins.
class ResponseWriter final : public AnswerWriter {
 public:
  // A record has fewer events than were sent live. Its numbers begin above all live ones, so a client that has begun
  // with the live stream gets each item of the record, from its beginning. They fit 32 bits, as in some libraries.
  static constexpr std::uint64_t kFirstOfRecord = std::uint64_t{1} << 30;

  explicit ResponseWriter(const OpenAiRequest& request)
      : stream_(request.stream),
        background_(request.background),
        is_kept_(request.is_agent),
        starting_after_(request.starting_after),
        model_(request.asked_model),
        instructions_(request.instructions),
        metadata_(request.metadata),
        previous_(request.previous_response_id),
        conversation_(request.continues ? request.chat_name : std::nullopt),
        tools_(ToolsJson(request)),
        tool_choice_(request.tool_choice),
        namespaced_(request.namespaced),
        wishes_(request.wishes),
        sequence_(request.is_record ? kFirstOfRecord : 0) {}

  void Begin(const AnswerHead& head, std::string& out) override {
    head_ = head;
    if (!stream_) return;
    Event("response.created", "\"response\":" + Object("in_progress", {}), out);
    Event("response.in_progress", "\"response\":" + Object("in_progress", {}), out);
  }

  void Thinking(std::string_view escaped, std::string& out) override { Piece(Kind::kReasoning, escaped, out); }
  void Text(std::string_view escaped, std::string& out) override { Piece(Kind::kMessage, escaped, out); }

  void Refusal(std::string_view escaped, std::string& out) override {
    refuses_ = true;
    Piece(Kind::kRefusal, escaped, out);
  }

  void Cite(const std::string& text, const std::vector<Citation>& citations, std::string& out) override {
    if (open_ != Kind::kMessage) return;
    const std::int64_t begin = std::max<std::int64_t>(0, EscapedCharacters(text_) - CharactersIn(text));
    for (const Citation& each : citations) {
      std::string annotation;
      AppendJsonObject(annotation, [&](JsonObjectWriter& json) {
        json["type"] = std::string_view("url_citation");
        WriteCitation(json, each, begin);
      });
      if (stream_) {
        Event("response.output_text.annotation.added",
              Place() + ",\"annotation_index\":" + std::to_string(annotations_count_) + ",\"annotation\":" + annotation,
              out);
      }
      ++annotations_count_;
      annotations_ += (annotations_.empty() ? "" : ",") + annotation;
    }
  }

  void Call(const ToolCall& call, std::string& out) override {
    Close(out);
    const std::string id = ItemId("fc_");
    std::string named = "\"call_id\":", arguments;
    AppendJsonString(named, call.id);
    const auto found = namespaced_.find(call.name);
    if (found != namespaced_.end()) named += ",\"namespace\":" + Quoted(found->second.name_space);
    named += ",\"name\":" + Quoted(found == namespaced_.end() ? call.name : found->second.name);
    AppendJsonString(arguments, call.arguments);
    const std::string begin = "{\"type\":\"function_call\",\"id\":\"" + id + "\"," + named + ",\"arguments\":";
    const std::string whole = begin + arguments + ",\"status\":\"completed\"}";
    if (stream_) {
      const std::string at = "\"item_id\":\"" + id + "\",\"output_index\":" + std::to_string(index_);
      Added(begin + "\"\",\"status\":\"in_progress\"}", out);
      Event("response.function_call_arguments.delta", at + ",\"delta\":" + arguments, out);
      Event("response.function_call_arguments.done", at + "," + named + ",\"arguments\":" + arguments, out);
    }
    Done(whole, out);
  }

  void End(const AnswerEnd& end, std::string& out) override {
    // A refusal in the model's own words is a whole answer.
    const bool is_cut = !end.truncated.empty() && !(refuses_ && end.truncated == "refusal");
    const bool is_whole = end.status == InteractionStatus::kCompleted && !is_cut;
    const bool is_running = !IsFinished(end.status) && !end.failure;
    const char* status = end.failure                                               ? "failed"
                         : is_running                                              ? "in_progress"
                         : is_whole                                                ? "completed"
                         : end.status == InteractionStatus::kCancelled && !stream_ ? "cancelled"
                                                                                   : "incomplete";
    Close(out, is_running ? "in_progress" : is_whole && !end.failure ? "completed" : "incomplete");
    const std::string object = Object(status, end);
    if (!stream_) {
      out += object;
      return;
    }
    // The last event is sent in any case.
    if (starting_after_) sequence_ = std::max(sequence_, *starting_after_ + 1);
    Event("response." + std::string(status), "\"response\":" + object, out);
    out += "data: [DONE]\n\n";
  }

 private:
  enum class Kind { kNone, kReasoning, kMessage, kRefusal };

  std::string ItemId(const char* prefix) const { return prefix + head_.name + "_" + std::to_string(index_); }

  // All events begin with their type and number; `members` follow.
  void Event(const std::string& type, const std::string& members, std::string& out) {
    const std::uint64_t number = sequence_++;
    if (starting_after_ && number <= *starting_after_) return;
    out.append("event: ").append(type).append("\ndata: {\"type\":\"").append(type).append("\",\"sequence_number\":");
    out.append(std::to_string(number)).append(",").append(members).append("}\n\n");
  }
  void Added(const std::string& item, std::string& out) {
    Event("response.output_item.added", "\"output_index\":" + std::to_string(index_) + ",\"item\":" + item, out);
  }
  void Done(const std::string& item, std::string& out) {
    if (stream_)
      Event("response.output_item.done", "\"output_index\":" + std::to_string(index_) + ",\"item\":" + item, out);
    if (!items_.empty()) items_ += ',';
    items_ += item;
    ++index_;
  }

  // `parts` are the finished parts.
  std::string Item(const char* status, const std::string& parts) const {
    const std::string content = "[" + parts + "]";
    if (open_ == Kind::kReasoning) {
      return "{\"type\":\"reasoning\",\"id\":\"" + ItemId("rs_") + "\",\"status\":\"" + status + "\",\"summary\":[" +
             (parts.empty() ? "" : Summary(text_)) + "],\"content\":" + content + "}";
    }
    return "{\"type\":\"message\",\"id\":\"" + ItemId("msg_") + "\",\"status\":\"" + status +
           "\",\"role\":\"assistant\",\"content\":" + content + "}";
  }
  std::string Part(const std::string& text) const {
    if (open_ == Kind::kReasoning) return "{\"type\":\"reasoning_text\",\"text\":\"" + text + "\"}";
    if (open_ == Kind::kRefusal) return "{\"type\":\"refusal\",\"refusal\":\"" + text + "\"}";
    return "{\"type\":\"output_text\",\"text\":\"" + text + "\",\"annotations\":[" + annotations_ +
           "],\"logprobs\":[]}";
  }
  // Most clients read a reasoning item's summary if they do not show its content.
  static std::string Summary(const std::string& text) {
    return "{\"type\":\"summary_text\",\"text\":\"" + text + "\"}";
  }
  void SummaryEvent(const char* step, const std::string& member, std::string& out) {
    if (open_ != Kind::kReasoning) return;
    Event("response.reasoning_summary_" + std::string(step),
          "\"item_id\":\"" + ItemId("rs_") + "\",\"output_index\":" + std::to_string(index_) + ",\"summary_index\":0," +
              member,
          out);
  }
  // The position of the open part, which all its events contain.
  std::string Place() const {
    return "\"item_id\":\"" + ItemId(open_ == Kind::kReasoning ? "rs_" : "msg_") +
           "\",\"output_index\":" + std::to_string(index_) + ",\"content_index\":0";
  }
  std::string TextEvent(const char* step) const {
    const char* begin = open_ == Kind::kReasoning ? "response.reasoning_text."
                        : open_ == Kind::kRefusal ? "response.refusal."
                                                  : "response.output_text.";
    return begin + std::string(step);
  }

  void Piece(Kind kind, std::string_view escaped, std::string& out) {
    if (open_ != kind) {
      Close(out);
      open_ = kind;
      if (stream_) {
        Added(Item("in_progress", ""), out);
        SummaryEvent("part.added", "\"part\":" + Summary(""), out);
        Event("response.content_part.added", Place() + ",\"part\":" + Part(""), out);
      }
    }
    text_ += escaped;
    if (!stream_) return;
    SummaryEvent("text.delta", "\"delta\":\"" + std::string(escaped) + "\"", out);
    const char* logprobs = kind == Kind::kMessage ? ",\"logprobs\":[]" : "";
    Event(TextEvent("delta"), Place() + ",\"delta\":\"" + std::string(escaped) + "\"" + logprobs, out);
  }

  // `status` is the open item's.
  void Close(std::string& out, const char* status = "completed") {
    if (open_ == Kind::kNone) return;
    const std::string item = Item(status, Part(text_));
    if (stream_) {
      SummaryEvent("text.done", "\"text\":\"" + text_ + "\"", out);
      SummaryEvent("part.done", "\"part\":" + Summary(text_), out);
      const char* logprobs = open_ == Kind::kMessage ? ",\"logprobs\":[]" : "";
      const char* name = open_ == Kind::kRefusal ? ",\"refusal\":\"" : ",\"text\":\"";
      Event(TextEvent("done"), Place() + name + text_ + "\"" + logprobs, out);
      Event("response.content_part.done", Place() + ",\"part\":" + Part(text_), out);
    }
    open_ = Kind::kNone;
    text_ = annotations_ = {};
    annotations_count_ = 0;
    Done(item, out);
  }

  std::string Object(std::string_view status, const AnswerEnd& end) const {
    const bool has_ended = status != "in_progress";
    std::string out;
    AppendJsonObject(out, [&](JsonObjectWriter& json) {
      json["id"] = "resp_" + head_.name;
      json["object"] = std::string_view("response");
      json["created_at"] = head_.created;
      json.Name("completed_at") += status == "completed" ? std::to_string(end.at.value_or(NowSeconds())) : "null";
      json["status"] = status;
      json.Name("incomplete_details") +=
          status == "incomplete"
              ? std::string("{\"reason\":\"") +
                    (end.truncated == "content_filter" || end.truncated == "refusal" ? "content_filter"
                     : end.status == InteractionStatus::kCancelled                   ? "cancelled"
                                                                                     : "max_output_tokens") +
                    "\"}"
              : "null";
      json["model"] = model_;
      json.Name("previous_response_id") += previous_ ? Quoted(*previous_) : "null";
      json.Name("conversation") += conversation_ ? "{\"id\":" + Quoted(*conversation_) + "}" : "null";
      json.Name("instructions") += instructions_.empty() ? "null" : Quoted(instructions_);
      json.Name("output") += "[" + items_ + "]";
      json.Name("error") += end.failure ? OpenAiErrorObject(*end.failure) : "null";
      json.Name("tools") += tools_;
      json.Name("tool_choice") += tool_choice_;
      json["truncation"] = std::string_view("disabled");
      json["parallel_tool_calls"] = true;
      json.Name("text") += "{\"format\":" + FormatJson(wishes_) + "}";
      json.Name("top_p") += DumpJson(Json(wishes_.top_p.value_or(1)));
      json["presence_penalty"] = 0;
      json["frequency_penalty"] = 0;
      json["top_logprobs"] = 0;
      json.Name("temperature") += DumpJson(Json(wishes_.temperature.value_or(1)));
      json.Name("reasoning") += R"({"effort":null,"summary":null})";
      json.Name("usage") += has_ended ? ResponseUsage(end.usage) : "null";
      json.Name("max_output_tokens") +=
          wishes_.max_output_tokens > 0 ? std::to_string(wishes_.max_output_tokens) : "null";
      json["max_tool_calls"] = nullptr;
      json["store"] = is_kept_;
      json["background"] = background_;
      json["service_tier"] = std::string_view("default");
      json.Name("metadata") += metadata_;
      json["user"] = nullptr;
      json["safety_identifier"] = nullptr;
      json["prompt_cache_key"] = nullptr;
    });
    return out;
  }

  static std::string Quoted(std::string_view text) {
    std::string out;
    AppendJsonString(out, text);
    return out;
  }
  static std::int64_t NowSeconds() {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }

  const bool stream_, background_, is_kept_;
  const std::optional<std::uint64_t> starting_after_;
  const std::string model_, instructions_, metadata_;
  const std::optional<std::string> previous_, conversation_;
  const std::string tools_, tool_choice_;
  const std::map<std::string, OpenAiRequest::NamespacedTool> namespaced_;
  const ModelWishes wishes_;
  bool refuses_ = false;
  AnswerHead head_;
  std::uint64_t sequence_;
  std::size_t index_ = 0;  // of the open item, or of the next one
  Kind open_ = Kind::kNone;
  std::string text_, annotations_;  // of the open item
  int annotations_count_ = 0;
  std::string items_;  // the finished items
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeResponseWriter(const OpenAiRequest& request) {
  return std::make_unique<ResponseWriter>(request);
}

}  // namespace reprise::openai
