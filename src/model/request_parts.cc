#include "model/request_parts.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/text.h"

namespace reprise {
namespace {

constexpr std::string_view kSilence = "(nothing)";
constexpr std::string_view kNoResult = "(There is no result of this call.)";

bool HasNoText(const std::optional<std::string>& text) {
  return !text || text->find_first_not_of(" \t\r\n") == std::string::npos;
}

// Imported content in parts stands in the extras.
bool HasContent(const Message& message) {
  return !HasNoText(message.content) || !message.parts.empty() ||
         (!message.content && message.extras.find("\"content\"") != std::string::npos);
}

bool IsSilent(const Message& message, const HistoryForm& form) {
  return message.role != Role::kTool && message.tool_calls.empty() && !HasContent(message) &&
         (form.with_blocks_of.empty() || !HasOwnCalls(message, form.with_blocks_of));
}

// Whether every result follows its call, and every call has a result.
bool AreCallsPaired(const Messages& messages) {
  const Message* asking = nullptr;
  std::size_t results = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (message.role == Role::kTool) {
      if (asking == nullptr || results == asking->tool_calls.size()) return false;
      const auto& calls = asking->tool_calls;
      const auto same = [&](const ToolCall& call) { return call.id == message.tool_call_id; };
      if (std::count_if(calls.begin(), calls.end(), same) != 1) return false;
      const auto here = messages.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::any_of(here - static_cast<std::ptrdiff_t>(results), here,
                      [&](const Message& each) { return each.tool_call_id == message.tool_call_id; })) {
        return false;
      }
      ++results;
      continue;
    }
    if (asking != nullptr && results != asking->tool_calls.size()) return false;
    asking = message.tool_calls.empty() ? nullptr : &message;
    results = 0;
  }
  return asking == nullptr || results == asking->tool_calls.size();
}

bool HasIdTwice(const Messages& messages) {
  std::set<std::string_view> ids;
  for (const Message& message : messages) {
    for (const ToolCall& call : message.tool_calls) {
      if (!ids.insert(call.id).second) return true;
    }
  }
  return false;
}

bool Join(const Message& a, const Message& b, const HistoryForm& form) {
  if (a.role != b.role || !a.tool_calls.empty()) return false;
  const auto has_blocks = [&](const Message& message) {
    return !form.with_blocks_of.empty() && message.extras.find("\"blocks\"") != std::string::npos;
  };
  if (a.role == Role::kAssistant && (has_blocks(a) || has_blocks(b))) return false;
  return (a.role == Role::kUser && form.joins_users) || (a.role == Role::kAssistant && form.joins_answers);
}

bool HasNeighbours(const Messages& messages, const HistoryForm& form) {
  return std::adjacent_find(messages.begin(), messages.end(),
                            [&](const Message& a, const Message& b) { return Join(a, b, form); }) != messages.end();
}

Message ToldResult(const Message& result) {
  return {.role = Role::kUser,
          .content =
              "(Not from the user: the result of a tool call that is no longer here.)\n" + result.content.value_or(""),
          .parts = result.parts};
}

// Appends `asking` with unique call ids, followed by the results, which are removed from `rest`.
void AppendWithResults(std::vector<Message>& mended, Message asking, std::vector<Message>& rest, std::size_t next) {
  std::set<std::string> ids;
  for (ToolCall& call : asking.tool_calls) {
    for (int more = 2; !ids.insert(call.id).second; ++more) call.id += "_" + std::to_string(more);
  }
  const std::vector<ToolCall> calls = asking.tool_calls;
  mended.push_back(std::move(asking));
  for (const ToolCall& call : calls) {
    Message result{.role = Role::kTool,
                   .content = std::string(kNoResult),
                   .tool_call_id = call.id,
                   .name = call.name,
                   .is_error = true};
    for (std::size_t i = next; i < rest.size() && rest[i].tool_calls.empty(); ++i) {
      if (rest[i].role != Role::kTool || rest[i].tool_call_id != call.id) continue;
      result = std::move(rest[i]);
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
    mended.push_back(std::move(result));
  }
}

void MakeIdsUnique(std::vector<Message>& messages) {
  std::set<std::string> ids;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    for (ToolCall& call : messages[i].tool_calls) {
      const std::string before = call.id;
      for (int more = 2; !ids.insert(call.id).second; ++more) call.id = before + "_" + std::to_string(more);
      if (call.id == before) continue;
      for (std::size_t j = i + 1; j < messages.size() && messages[j].role == Role::kTool; ++j) {
        if (messages[j].tool_call_id == before) messages[j].tool_call_id = call.id;
      }
    }
  }
}

void JoinNeighbours(std::vector<Message>& messages, const HistoryForm& form) {
  std::vector<Message> joined;
  for (Message& message : messages) {
    if (joined.empty() || !Join(joined.back(), message, form)) {
      joined.push_back(std::move(message));
      continue;
    }
    Message& before = joined.back();
    if (!HasNoText(message.content)) {
      before.content = before.content.value_or("") + (HasNoText(before.content) ? "" : "\n\n") + *message.content;
    }
    before.tool_calls = std::move(message.tool_calls);
    before.extras = std::move(message.extras);
    before.parts.insert(before.parts.end(), message.parts.begin(), message.parts.end());
  }
  messages = std::move(joined);
}

std::uint64_t HashOfText(std::string_view text) {
  std::uint64_t hash = 1469598103934665603u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

}  // namespace

std::optional<Messages> MendHistory(const Messages& messages, const HistoryForm& form) {
  const auto is_silent = [&](const Message& message) { return IsSilent(message, form); };
  const bool has_silent = std::any_of(messages.begin(), messages.end(), is_silent);
  const bool is_paired = AreCallsPaired(messages);
  const bool has_twice = form.unique_call_ids && HasIdTwice(messages);
  const bool has_neighbours = HasNeighbours(messages, form);
  if (!has_silent && is_paired && !has_twice && !has_neighbours) return std::nullopt;
  std::vector<Message> rest(messages.begin(), messages.end()), mended;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    Message message = std::move(rest[i]);
    if (is_silent(message)) {
      if (message.role != Role::kUser) continue;
      message.content = std::string(kSilence);
      message.extras.clear();
    }
    if (message.role == Role::kTool && !is_paired) {
      mended.push_back(ToldResult(message));
    } else if (!message.tool_calls.empty() && !is_paired) {
      AppendWithResults(mended, std::move(message), rest, i + 1);
    } else {
      mended.push_back(std::move(message));
    }
  }
  if (form.unique_call_ids) MakeIdsUnique(mended);
  JoinNeighbours(mended, form);
  return Messages(std::move(mended));
}

std::string SentName(std::string_view name, std::size_t longest) {
  constexpr std::size_t kHash = 16;
  std::string sent(name);
  if (name.size() > longest) {
    sent.resize(longest - kHash);
    for (std::uint64_t hash = HashOfText(name); sent.size() < longest; hash >>= 4) sent += kHexDigits[hash & 15];
  }
  for (char& c : sent) {
    if (!IsToolNameCharacter(c)) c = '_';
  }
  return sent.empty() ? "_" : sent;
}

std::string ShortCallId(std::string_view id) {
  constexpr std::size_t kLength = 9;
  constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const auto is_letter = [&](char c) { return kLetters.find(c) != std::string_view::npos; };
  if (id.size() == kLength && std::all_of(id.begin(), id.end(), is_letter)) return std::string(id);
  std::string sent;
  for (std::uint64_t hash = HashOfText(id); sent.size() < kLength; hash /= kLetters.size())
    sent += kLetters[hash % kLetters.size()];
  return sent;
}

std::string MakeProviderExtras(std::string_view provider, Json members) {
  if (members.empty()) return {};
  Json by_provider = Json::object();
  by_provider[std::string(provider)] = std::move(members);
  Json extras = Json::object();
  extras[std::string(kProviderExtras)] = std::move(by_provider);
  return DumpJson(extras);
}

Json ParseExtras(const Message& message) {
  if (message.extras.empty()) return Json::object();
  auto extras = ParseJson(message.extras, 2 * kMaxJsonDepth);
  if (!extras || !extras->is_object()) return Json::object();
  return *std::move(extras);
}

const Json* FindProviderExtras(const Json& extras, std::string_view provider) {
  const auto by_provider = extras.find(kProviderExtras);
  if (by_provider == extras.end() || !by_provider->is_object()) return nullptr;
  const auto members = by_provider->find(provider);
  return members == by_provider->end() || !members->is_object() ? nullptr : &*members;
}

std::string SentArguments(const std::string& arguments) {
  const std::size_t begin = arguments.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "{}";
  const bool is_cut = arguments.find('\0') != std::string::npos;  // where the library's parser takes it for complete
  if (arguments[begin] == '{' && !is_cut && ParseJson(arguments, kMaxJsonDepth, DuplicateMembers::kLastWins))
    return arguments;
  std::string wrapped = R"({"not_valid_json":)";
  AppendJsonString(wrapped, arguments);
  return wrapped + '}';
}

namespace {

bool IsPlain(std::string_view type) {
  return std::all_of(type.begin(), type.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '/' || c == '-' || c == '.' || c == '+';
  });
}

}  // namespace

PartContent ReadPart(const MessagePart& part, FilesOfChat* files) {
  auto file = files == nullptr ? Fail(ErrorCode::kNotFound, "the chat has no files") : files->Get(part.file_id);
  if (file && IsPlain(part.mime_type)) return {.bytes = std::move(file->content)};
  const std::string why = file ? "its type is not known" : file.error().message;
  return {.bytes = {},
          .problem = "(" + part.file_id.str() + ", \"" + part.filename + "\", cannot be sent: " + why + ")"};
}

void AppendDataUrl(std::string& out, const MessagePart& part, std::string_view bytes) {
  out += "\"data:";
  out += part.mime_type;  // a plain MIME type, or there are no bytes
  out += ";base64,";
  AppendBase64(out, bytes);
  out += '"';
}

void AppendBase64String(std::string& out, std::string_view bytes) {
  out += '"';
  AppendBase64(out, bytes);
  out += '"';
}

std::string_view AudioFormat(const MessagePart& part) {
  if (part.mime_type == "audio/wav" || part.mime_type == "audio/x-wav") return "wav";
  if (part.mime_type == "audio/mpeg" || part.mime_type == "audio/mp3") return "mp3";
  return "";
}

std::size_t EncodedSize(const Messages& messages) {
  std::size_t bytes = 0;
  for (const Message& message : messages) {
    for (const MessagePart& part : message.parts) bytes += static_cast<std::size_t>(part.size_bytes) / 3 * 4 + 256;
  }
  return bytes;
}

namespace {

using Kind = AnthropicBlock::Kind;

std::vector<AnthropicBlock> Kept(const Message& message, std::string_view provider) {
  std::vector<AnthropicBlock> blocks;
  if (message.extras.empty()) return blocks;
  const Json extras = ParseExtras(message);
  const Json* const own = FindProviderExtras(extras, provider);
  const Json& holder = own ? *own : extras;
  const auto kept = holder.find(own ? kBlocks : kAnthropicBlocks);
  if (kept == holder.end() || !kept->is_array()) return blocks;
  for (const Json& block : *kept) {
    const auto type = block.is_object() ? block.find("type") : block.end();
    if (type == block.end()) continue;
    if (*type == "text") {
      const auto bytes = block.find("bytes");
      const bool is_size = bytes != block.end() && bytes->is_number_unsigned();
      const auto citations = block.find("citations");
      const bool cites = citations != block.end() && citations->is_array() && !citations->empty();
      blocks.push_back({.kind = Kind::kText,
                        .text_bytes = is_size ? bytes->get<std::size_t>() : 0,
                        .json = cites ? DumpJson(*citations) : std::string()});
    } else if (*type == "tool_use") {
      blocks.push_back({.kind = Kind::kToolUse});
    } else {
      const bool is_call = *type == "server_tool_use";
      blocks.push_back({.kind = Kind::kVerbatim,
                        .json = DumpJson(block),
                        .own_call = is_call ? TextMember(block, "id") : std::string(),
                        .own_result = TextMember(block, "tool_use_id")});
    }
  }
  return blocks;
}

bool MayHaveOwnCalls(const Message& message) {
  return message.extras.find("server_tool_use") != std::string::npos ||
         message.extras.find("_tool_result") != std::string::npos;
}

bool Fit(const std::vector<AnthropicBlock>& blocks, const Message& message) {
  std::size_t left = message.content ? message.content->size() : 0, calls = 0;
  for (const AnthropicBlock& block : blocks) {
    if (block.text_bytes > left) return false;
    left -= block.text_bytes;
    if (block.kind == Kind::kToolUse) ++calls;
  }
  return left == 0 && calls == message.tool_calls.size();
}

}  // namespace

std::string ExtrasOf(const std::vector<AnthropicBlock>& blocks, std::string_view provider) {
  const bool plain =
      std::none_of(blocks.begin(), blocks.end(), [](const AnthropicBlock& block) { return !block.json.empty(); });
  if (plain) return {};
  Json kept = Json::array();
  for (const AnthropicBlock& block : blocks) {
    switch (block.kind) {
      case Kind::kText:
        kept.push_back({{"type", "text"}, {"bytes", block.text_bytes}});
        if (auto citations = ParseJson(block.json, kMaxJsonDepth, DuplicateMembers::kLastWins))
          kept.back()["citations"] = *std::move(citations);
        break;
      case Kind::kToolUse:
        kept.push_back({{"type", "tool_use"}});
        break;
      case Kind::kVerbatim:
        if (auto json = ParseJson(block.json, kMaxJsonDepth, DuplicateMembers::kLastWins))
          kept.push_back(*std::move(json));
        break;
    }
  }
  return MakeProviderExtras(provider, {{std::string(kBlocks), std::move(kept)}});
}

bool HasOwnCalls(const Message& message, std::string_view provider) {
  if (message.role != Role::kAssistant || !MayHaveOwnCalls(message)) return false;
  const std::vector<AnthropicBlock> blocks = Kept(message, provider);
  return std::any_of(blocks.begin(), blocks.end(), [](const AnthropicBlock& block) { return block.is_of_search(); });
}

std::vector<AnthropicBlock> BlocksOf(const Message& message, std::string_view provider) {
  std::vector<AnthropicBlock> blocks = Kept(message, provider);
  if (!blocks.empty() && Fit(blocks, message)) return blocks;
  std::erase_if(blocks, [](const AnthropicBlock& block) { return block.kind != Kind::kVerbatim; });
  blocks.push_back({.kind = Kind::kText, .text_bytes = std::string::npos});
  blocks.resize(blocks.size() + message.tool_calls.size(), {.kind = Kind::kToolUse});
  return blocks;
}

}  // namespace reprise
