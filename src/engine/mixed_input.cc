#include "engine/mixed_input.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/try.h"
#include "engine/told_request.h"

namespace reprise {
namespace {

constexpr std::string_view kBetweenParagraphs = "\n\n";

// A request's body. The text must outlive it.
struct Body {
  ToldBody told;
  std::vector<std::pair<std::string, std::string_view>> members{};  // with their values as written
  std::string_view system{};                                        // the value that holds the system prompt
  bool in_messages() const { return !told.system_role.empty(); }
};

Result<Body> ReadBody(const std::string& text) {
  const auto wrong = Fail(ErrorCode::kInvalidArgument, "the request is no conversation in JSON");
  const auto parsed = ParseJson(text, kMostToldDepth);
  if (!parsed || !parsed->is_object()) return wrong;
  Body body{.told = TRY(ReadTold(text))};
  if (body.told.messages_path.empty()) return wrong;
  for (const RawJsonMember& member : RawMembers(text)) {
    body.members.emplace_back(ParseJson(member.name)->get<std::string>(), member.value);
    const auto& [name, value] = body.members.back();
    if ("/" + name == body.told.system_path) body.system = value;
    const bool is_messages = "/" + name == body.told.messages_path;
    if (is_messages && body.in_messages()) body.system = RawElements(value).front();
  }
  return body;
}

std::vector<std::string> ParagraphsOf(std::string_view text) {
  std::vector<std::string> paragraphs;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kBetweenParagraphs), text.size());
    paragraphs.emplace_back(text.substr(0, end));
    if (end + kBetweenParagraphs.size() == text.size()) paragraphs.emplace_back();  // a blank line at the end
    text.remove_prefix(std::min(text.size(), end + kBetweenParagraphs.size()));
  }
  return paragraphs;
}

// The places of equal elements, in order: as many as there can be.
std::vector<std::pair<std::size_t, std::size_t>> CommonPlaces(const std::vector<std::string>& some,
                                                              const std::vector<std::string>& others) {
  constexpr std::size_t kMostWork = 4u << 20;
  std::vector<std::pair<std::size_t, std::size_t>> places;
  if (some.size() * others.size() > kMostWork) return places;
  const std::size_t row = others.size() + 1;
  std::vector<std::uint32_t> length((some.size() + 1) * row, 0);  // of the rest
  for (std::size_t i = some.size(); i-- > 0;) {
    for (std::size_t j = others.size(); j-- > 0;) {
      length[i * row + j] = some[i] == others[j] ? length[(i + 1) * row + j + 1] + 1
                                                 : std::max(length[(i + 1) * row + j], length[i * row + j + 1]);
    }
  }
  for (std::size_t i = 0, j = 0; i < some.size() && j < others.size();) {
    if (some[i] == others[j]) {
      places.emplace_back(i++, j++);
    } else {
      ++(length[(i + 1) * row + j] >= length[i * row + j + 1] ? i : j);
    }
  }
  return places;
}

// What is known of a changed text of the prompt.
Drift NameOf(const std::string& was, const std::string& is, const std::vector<Drift>& names) {
  const auto is_in = [](const std::string& part, const std::string& whole) {
    return !part.empty() && whole.find(part) != whole.npos;
  };
  for (const bool now : {true, false}) {  // what stands there now says more
    for (const Drift& each : names) {
      const bool is_of_prompt = each.cause == Drift::Cause::kModule || each.cause == Drift::Cause::kInstructions ||
                                each.cause == Drift::Cause::kSkill;
      const bool is_it = now ? is_in(is, each.after) : is_in(was, each.before);
      if (is_of_prompt && is_it) return {.cause = each.cause, .name = each.name};
    }
  }
  return {.cause = Drift::Cause::kModule};
}

// The value of a system prompt, with another text.
std::string WithText(std::string_view value, const std::string& text) {
  Json json = ParseJson(value, kMostToldDepth).value_or(Json());
  Json& content = json.is_object() && json.contains("role") ? json["content"] : json;
  if (!content.is_array()) {
    content = text;
    return DumpJson(json);
  }
  bool has_text = false;
  Json parts = Json::array();
  for (Json& part : content) {
    if (!part.contains("text")) {
      parts.push_back(std::move(part));
    } else if (!std::exchange(has_text, true)) {
      part["text"] = text;
      parts.push_back(std::move(part));
    }
  }
  content = std::move(parts);
  return DumpJson(json);
}

std::vector<std::string> NamesOf(const std::vector<std::pair<std::string, Json>>& tools) {
  std::vector<std::string> names;
  for (const auto& [name, tool] : tools) names.push_back(name);
  return names;
}

std::string_view ValueOf(const Body& body, const std::string& name) {
  const auto found = std::ranges::find(body.members, name, [](const auto& each) { return each.first; });
  return found == body.members.end() ? std::string_view() : found->second;
}

std::optional<std::string> TextIfAny(std::string_view value) {
  return value.empty() ? std::nullopt : std::optional(std::string(value));
}

bool IsOfInput(const Body& body, const std::string& name) {
  return name != "tools" && "/" + name != body.told.messages_path && "/" + name != body.told.system_path;
}

}  // namespace

Result<MixedInput> MixedInput::Of(const std::string& recorded, const std::string& current,
                                  const std::vector<Drift>& names) {
  const Body was = TRY(ReadBody(recorded)), is = TRY(ReadBody(current));
  const bool has_both = !was.system.empty() && !is.system.empty();
  const bool is_same_place = was.told.system_path == is.told.system_path && was.told.system_role == is.told.system_role;
  if (was.told.messages_path != is.told.messages_path || (has_both && !is_same_place)) {
    return Fail(ErrorCode::kInvalidArgument, "the recorded request and today's are for different interfaces");
  }
  MixedInput input;
  input.recorded_system_ = was.system;
  input.current_system_ = is.told.system;
  input.system_path_ = was.system.empty() ? is.told.system_path : was.told.system_path;
  input.ComparePrompt(was.told.system, is.told.system, names);
  input.CompareTools(was.told.tools, is.told.tools);
  for (const auto& [name, value] : was.members) {
    input.recorded_members_.push_back(name);
    if (IsOfInput(was, name) && IsOfInput(is, name)) input.CompareMember(name, value, ValueOf(is, name));
  }
  for (const auto& [name, value] : is.members) {
    const bool is_new = ValueOf(was, name).empty();
    if (is_new && IsOfInput(was, name) && IsOfInput(is, name)) input.CompareMember(name, {}, value);
  }
  const std::string restored = TRY(input.Mix(current, std::vector<bool>(input.differences_.size())));
  if (restored != recorded) input.left_over_ = FirstDifference(Parsed(recorded), Parsed(restored), "").path;
  return input;
}

std::size_t MixedInput::Add(Drift drift) {
  differences_.push_back(std::move(drift));
  return differences_.size() - 1;
}

// Of paragraphs that others stand for now, each is compared with one of them, in their order.
void MixedInput::ComparePrompt(const std::string& recorded, const std::string& current,
                               const std::vector<Drift>& names) {
  const auto was = ParagraphsOf(recorded), is = ParagraphsOf(current);
  const auto add = [&](std::optional<std::string> before, std::optional<std::string> after) {
    Drift drift = NameOf(before.value_or(""), after.value_or(""), names);
    drift.path = system_path_;
    drift.before = before.value_or("");
    drift.after = after.value_or("");
    prompt_.push_back(
        {.recorded = std::move(before), .current = std::move(after), .difference = Add(std::move(drift))});
  };
  auto places = CommonPlaces(was, is);
  places.emplace_back(was.size(), is.size());
  std::size_t i = 0, j = 0;
  for (const auto& [next_was, next_is] : places) {
    for (; i < next_was || j < next_is; ++i, ++j) {
      add(i < next_was ? std::optional(was[i]) : std::nullopt, j < next_is ? std::optional(is[j]) : std::nullopt);
    }
    if (next_was < was.size()) prompt_.push_back({.recorded = was[next_was], .current = was[next_was]});
    i = next_was + 1, j = next_is + 1;
  }
}

void MixedInput::CompareTools(std::string_view recorded, std::string_view current) {
  const auto was = ToolsIn(recorded), is = ToolsIn(current);
  const auto raw_was = RawElements(recorded), raw_is = RawElements(current);
  recorded_order_ = NamesOf(was);
  current_order_ = NamesOf(is);
  for (std::size_t i = 0; i < was.size(); ++i) {
    const auto& [name, tool] = was[i];
    const auto now = std::ranges::find(current_order_, name);
    const auto place = static_cast<std::size_t>(now - current_order_.begin());
    Piece piece{.name = name, .recorded = std::string(raw_was[i])};
    if (now != current_order_.end()) piece.current = raw_is[place];
    if (!piece.current || is[place].second != tool) {
      piece.difference = Add({.cause = Drift::Cause::kTool,
                              .name = name,
                              .path = "/tools/" + std::to_string(i),
                              .before = *piece.recorded,
                              .after = piece.current.value_or("")});
    }
    tools_.push_back(std::move(piece));
  }
  for (std::size_t i = 0; i < is.size(); ++i) {
    const auto& [name, tool] = is[i];
    if (std::ranges::find(recorded_order_, name) != recorded_order_.end()) continue;
    const std::string text(raw_is[i]);
    const Drift drift{.cause = Drift::Cause::kTool, .name = name, .path = "/tools/" + std::to_string(i), .after = text};
    tools_.push_back({.name = name, .current = text, .difference = Add(drift)});
  }
  const auto shared = [](const std::vector<std::string>& names, const std::vector<std::string>& others) {
    std::vector<std::string> both;
    std::ranges::copy_if(names, std::back_inserter(both),
                         [&](const std::string& name) { return std::ranges::count(others, name) > 0; });
    return both;
  };
  const auto order_was = shared(recorded_order_, current_order_), order_is = shared(current_order_, recorded_order_);
  if (order_was == order_is) return;
  order_ = Add({.cause = Drift::Cause::kTool,
                .name = "(order)",
                .path = "/tools",
                .before = DumpJson(Json(order_was)),
                .after = DumpJson(Json(order_is))});
}

void MixedInput::CompareMember(const std::string& name, std::string_view recorded, std::string_view current) {
  Piece piece{.name = name, .recorded = TextIfAny(recorded), .current = TextIfAny(current)};
  const bool has_both = piece.recorded && piece.current;
  const bool is_made_of_others = name == "prompt_cache_key";
  if (!has_both || (!is_made_of_others && Parsed(recorded) != Parsed(current))) {
    piece.difference = Add({.cause = name == "model" ? Drift::Cause::kModel : Drift::Cause::kParameter,
                            .name = name,
                            .path = "/" + name,
                            .before = std::string(recorded),
                            .after = std::string(current)});
  }
  members_.push_back(std::move(piece));
}

std::string MixedInput::PromptOf(const Choice& choice) const {
  std::string text;
  bool is_first = true;
  for (const Piece& piece : prompt_) {
    const auto& chosen = choice.of(piece);
    if (chosen) text += (std::exchange(is_first, false) ? "" : std::string(kBetweenParagraphs)) + *chosen;
  }
  return text;
}

// Tools that only one input has stand behind the tool that they stand behind there.
std::string MixedInput::ToolsOf(const Choice& choice) const {
  const bool is_current = choice.takes_current(order_);
  std::vector<std::string> order = is_current ? current_order_ : recorded_order_;
  const std::vector<std::string>& others = is_current ? recorded_order_ : current_order_;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (std::ranges::find(order, others[i]) != order.end()) continue;
    const auto before = i == 0 ? order.end() : std::ranges::find(order, others[i - 1]);
    order.insert(before == order.end() ? (i == 0 ? order.begin() : order.end()) : before + 1, others[i]);
  }
  std::string text;
  for (const std::string& name : order) {
    const auto piece = std::ranges::find(tools_, name, &Piece::name);
    const auto& chosen = choice.of(*piece);
    if (chosen) text += (text.empty() ? "" : ",") + *chosen;
  }
  return text.empty() ? text : "[" + text + "]";
}

// `now`: the value in the body that is changed, which holds the text `prompt_now`.
std::string MixedInput::SystemOf(const Choice& choice, std::string_view now, const std::string& prompt_now) const {
  if (choice.none) return recorded_system_;
  const std::string text = PromptOf(choice);
  if (text.empty()) return {};
  if (text == prompt_now) return std::string(now);
  return WithText(now.empty() ? std::string_view(recorded_system_) : now, text);
}

Result<std::string> MixedInput::Mix(const std::string& body, const std::vector<bool>& is_current) const {
  const Body now = TRY(ReadBody(body));
  const bool any = std::ranges::find(is_current, true) != is_current.end();
  const bool all = std::ranges::find(is_current, false) == is_current.end();
  if (all || now.told.system != current_system_) return body;
  const Choice choice{.is_current = is_current, .none = !any};
  const std::string system = SystemOf(choice, now.system, now.told.system);
  const std::string messages = now.told.messages_path.substr(1);
  const bool in_messages = system_path_.starts_with(now.told.messages_path + "/");
  std::vector<std::string> names = choice.none ? recorded_members_ : std::vector<std::string>();
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const auto& [name, value] : now.members) add(name);
  for (const std::string& name : recorded_members_) add(name);
  std::string mixed;
  for (const std::string& name : names) {
    std::string value;
    if (name == messages) {
      if (in_messages) value = system;
      for (const std::string_view each : now.told.messages) {
        if (!each.empty()) value += (value.empty() ? "" : ",") + std::string(each);
      }
      value = "[" + value + "]";
    } else if (!in_messages && "/" + name == system_path_) {
      value = system;
    } else if (name == "tools") {
      value = ToolsOf(choice);
      const bool had_none = choice.none && std::ranges::find(recorded_members_, name) != recorded_members_.end();
      if (value.empty() && had_none) value = "[]";
    } else {
      const auto piece = std::ranges::find(members_, name, &Piece::name);
      value = piece == members_.end() ? std::string(ValueOf(now, name)) : choice.of(*piece).value_or("");
    }
    if (!value.empty()) mixed += (mixed.empty() ? "" : ",") + DumpJson(Json(name)) + ":" + value;
  }
  return "{" + mixed + "}";
}

}  // namespace reprise
