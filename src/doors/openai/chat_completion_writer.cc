#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "doors/openai/answer_writer.h"

namespace reprise::openai {
namespace {

std::string_view FinishReason(const AnswerEnd& end, bool has_calls) {
  if (has_calls) return "tool_calls";
  if (end.truncated == "content_filter" || end.truncated == "refusal") return "content_filter";
  return end.truncated.empty() ? "stop" : "length";
}

std::string ChatUsage(const TokenUsage& usage) {
  std::string out;
  AppendJsonObject(out, [&](JsonObjectWriter& json) {
    json["prompt_tokens"] = usage.input_tokens;
    json["completion_tokens"] = usage.output_tokens;
    json["total_tokens"] = usage.input_tokens + usage.output_tokens;
    AppendJsonObject(json.Name("prompt_tokens_details"),
                     [&](JsonObjectWriter& details) { details["cached_tokens"] = usage.cache_read_tokens; });
  });
  return out;
}

class ChatCompletionWriter final : public AnswerWriter {
 public:
  explicit ChatCompletionWriter(const OpenAiRequest& request)
      : stream_(request.stream), include_usage_(request.include_usage), model_(request.asked_model) {}

  void Begin(const AnswerHead& head, std::string& out) override {
    head_ = "{\"id\":\"chatcmpl_" + head.name + "\",\"object\":\"chat.completion" + (stream_ ? ".chunk" : "") +
            "\",\"created\":" + std::to_string(head.created) + ",\"model\":";
    AppendJsonString(head_, model_);
    if (stream_) Delta("\"role\":\"assistant\",\"content\":\"\"", out);
  }

  void Thinking(std::string_view escaped, std::string& out) override {
    Piece("reasoning_content", thinking_, escaped, out);
  }
  void Text(std::string_view escaped, std::string& out) override {
    characters_ += EscapedCharacters(escaped);
    Piece("content", text_, escaped, out);
  }

  void Refusal(std::string_view escaped, std::string& out) override {
    refuses_ = true;
    Piece("refusal", refusal_, escaped, out);
  }

  void Cite(const std::string& text, const std::vector<Citation>& citations, std::string& out) override {
    const std::int64_t begin = std::max<std::int64_t>(0, characters_ - CharactersIn(text));
    std::string list;
    for (const Citation& each : citations) {
      list += list.empty() ? "" : ",";
      AppendJsonObject(list, [&](JsonObjectWriter& json) {
        json["type"] = std::string_view("url_citation");
        AppendJsonObject(json.Name("url_citation"),
                         [&](JsonObjectWriter& citation) { WriteCitation(citation, each, begin); });
      });
    }
    if (list.empty()) return;
    if (stream_) return Delta("\"annotations\":[" + list + "]", out);
    annotations_ += (annotations_.empty() ? "" : ",") + list;
  }

  void Call(const ToolCall& call, std::string& out) override {
    std::string json = "{";
    if (stream_) json += "\"index\":" + std::to_string(calls_count_) + ",";
    ++calls_count_;
    json += "\"id\":";
    AppendJsonString(json, call.id);
    json += ",\"type\":\"function\",\"function\":{\"name\":";
    AppendJsonString(json, call.name);
    json += ",\"arguments\":";
    AppendJsonString(json, call.arguments);
    json += "}}";
    if (stream_) return Delta("\"tool_calls\":[" + json + "]", out);
    if (!calls_.empty()) calls_ += ',';
    calls_ += json;
  }

  void End(const AnswerEnd& end, std::string& out) override {
    // A refusal in the model's own words is a whole answer.
    const bool is_refusal = refuses_ && end.truncated == "refusal";
    const std::string finish(is_refusal ? "stop" : FinishReason(end, calls_count_ > 0));
    if (!stream_) return WriteWhole(end, finish, out);
    if (end.failure) {
      out += "data: {\"error\":" + OpenAiErrorObject(*end.failure) + "}\n\n";
      return;
    }
    out += "data: " + head_ + ",\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"" +
           finish + "\"}]" + (include_usage_ ? ",\"usage\":null" : "") + "}\n\n";
    if (include_usage_) out += "data: " + head_ + ",\"choices\":[],\"usage\":" + ChatUsage(end.usage) + "}\n\n";
    out += "data: [DONE]\n\n";
  }

 private:
  void Piece(std::string_view name, std::string& whole, std::string_view escaped, std::string& out) {
    if (!stream_) {
      whole += escaped;
      return;
    }
    out.append("data: ").append(head_).append(",\"choices\":[{\"index\":0,\"delta\":{\"").append(name).append("\":\"");
    out.append(escaped).append("\"},\"logprobs\":null,\"finish_reason\":null}]");
    EndChunk(out);
  }
  void Delta(const std::string& members, std::string& out) const {
    out += "data: " + head_ + ",\"choices\":[{\"index\":0,\"delta\":{" + members +
           "},\"logprobs\":null,\"finish_reason\":null}]";
    EndChunk(out);
  }
  void EndChunk(std::string& out) const { out += include_usage_ ? ",\"usage\":null}\n\n" : "}\n\n"; }

  void WriteWhole(const AnswerEnd& end, const std::string& finish, std::string& out) const {
    const bool says_nothing = text_.empty() && (!calls_.empty() || refuses_);
    out += head_ + ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":";
    out += says_nothing ? "null" : "\"" + text_ + "\"";
    out += ",\"refusal\":" + (refuses_ ? "\"" + refusal_ + "\"" : "null");
    if (!annotations_.empty()) out += ",\"annotations\":[" + annotations_ + "]";
    if (!thinking_.empty()) out += ",\"reasoning_content\":\"" + thinking_ + "\"";
    if (!calls_.empty()) out += ",\"tool_calls\":[" + calls_ + "]";
    out += "},\"logprobs\":null,\"finish_reason\":\"" + finish + "\"}],\"usage\":" + ChatUsage(end.usage) + "}";
  }

  const bool stream_, include_usage_;
  const std::string model_;
  std::string head_;                                             // the beginning of all chunks
  std::string text_, refusal_, thinking_, calls_, annotations_;  // of an answer that is no stream
  bool refuses_ = false;
  std::int64_t characters_ = 0;  // of the text so far
  int calls_count_ = 0;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeChatCompletionWriter(const OpenAiRequest& request) {
  return std::make_unique<ChatCompletionWriter>(request);
}

std::int64_t EscapedCharacters(std::string_view escaped) {
  std::int64_t characters = 0;
  for (std::size_t at = 0; at < escaped.size(); ++characters) {
    const bool is_escape = escaped[at] == '\\';
    const bool has_code = is_escape && escaped.substr(at + 1, 1) == "u";
    at += has_code ? 6 : is_escape ? 2 : 1;
    while (at < escaped.size() && (static_cast<unsigned char>(escaped[at]) & 0xC0) == 0x80) ++at;
  }
  return characters;
}

void WriteCitation(JsonObjectWriter& out, const Citation& citation, std::int64_t begin) {
  out["start_index"] = begin + citation.start;
  out["end_index"] = begin + citation.end;
  out["url"] = citation.source.url;
  out["title"] = citation.source.title;
}

std::string OpenAiErrorObject(const AnswerFailure& failure, std::string_view type) {
  std::string out;
  AppendJsonObject(out, [&](JsonObjectWriter& json) {
    json["message"] = failure.message;
    json["type"] = type;
    json["param"] = nullptr;
    json["code"] = failure.code;
    json["retryable"] = failure.retryable;
  });
  return out;
}

}  // namespace reprise::openai
