#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "base/deflate.h"
#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"
#include "domain/json_reader.h"

namespace reprise {
namespace {

constexpr std::string_view kPurposes[] = {"turn", "summary", "sub_agent"};
constexpr std::string_view kFinishes[] = {"stop",           "tool_calls", "length", "context_window",
                                          "content_filter", "refusal",    "pause",  "other"};
constexpr const char* kDeflated = "deflated";  // a text
constexpr const char* kPieces[] = {"text", "head", "tail", "content", "arguments", "quoted", "file"};

bool HasCall(BodyPiece::Kind kind) { return kind == BodyPiece::Kind::kArguments || kind == BodyPiece::Kind::kQuoted; }

tl::unexpected<Error> NotA(const char* what) {
  return Fail(ErrorCode::kInvalidArgument, std::string("a stored request has a ") + what + " that is none");
}

Json ToJson(const RequestPlace& place) { return {place.interaction.str(), place.index}; }

Result<RequestPlace> PlaceFromJson(const Json& json) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_string() || !json[1].is_number_unsigned()) {
    return NotA("place");
  }
  const auto id = InteractionId::Parse(json[0].get_ref<const std::string&>());
  if (!id) return NotA("place");
  return RequestPlace{*id, json[1].get<std::uint64_t>()};
}

Result<BodyMark> MarkFromJson(const Json& json) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_number_unsigned() || !json[1].is_string()) {
    return NotA("mark");
  }
  return BodyMark{json[0].get<std::uint64_t>(), json[1].get<std::string>()};
}

}  // namespace

static Json ToJson(const BodyMark& mark) { return {mark.bytes, mark.digest}; }

static void AppendJson(std::string& out, const BodyMark& mark) {
  out.append(1, '[').append(std::to_string(mark.bytes)).append(1, ',');
  AppendJsonString(out, mark.digest);
  out += ']';
}

static Json ToJson(const BodyPiece& piece) {
  if (piece.kind == BodyPiece::Kind::kText) return piece.text.view();
  if (piece.kind == BodyPiece::Kind::kFile) return {{"file", piece.text.view()}};
  const Json value = HasCall(piece.kind) ? Json{piece.first, piece.second} : Json(piece.first);
  return {{kPieces[static_cast<int>(piece.kind)], value}};
}

static void AppendJson(std::string& out, const BodyPiece& piece) {
  if (piece.kind != BodyPiece::Kind::kText) {
    out += DumpJson(ToJson(piece));
  } else if (const std::string_view literal = piece.text.literal(); !literal.empty()) {
    out += literal;
  } else {
    out += PackedLiteral(piece.text.view());
  }
}

static Json ToJson(const ToldModule& module) {
  return module.bytes ? Json{module.name, *module.bytes} : Json(module.name);
}

static void AppendJson(std::string& out, const ToldModule& module) {
  if (module.bytes) out += '[';
  AppendJsonString(out, module.name);
  if (module.bytes) out.append(1, ',').append(std::to_string(*module.bytes)).append(1, ']');
}

namespace {

// The bounds keep a small hostile document from becoming a large one; what is longer or more alike is stored as it is.
constexpr std::size_t kShortestPacked = std::size_t{1} << 10, kLongestPacked = std::size_t{1} << 18, kMostPacked = 32;

Result<SharedText> TextOf(const Json& deflated) {
  const auto packed = deflated.is_string() ? DecodeBase64Url(deflated.get_ref<const std::string&>()) : std::nullopt;
  if (!packed) return NotA("deflated piece");
  auto text = Inflate(*packed, Packing::kDeflate, std::min(kLongestPacked, kMostPacked * packed->size()));
  if (!text || !IsUtf8(*text)) return NotA("deflated piece");
  return SharedText(std::make_shared<const std::string>(*std::move(text)),
                    std::make_shared<const std::string>(DumpJson({{kDeflated, deflated}})));
}

Result<BodyPiece> PieceFromJson(const Json& json) {
  if (json.is_string()) return BodyPiece{.text = json.get<std::string>()};
  if (!json.is_object() || json.size() != 1) return NotA("piece");
  if (const auto deflated = json.find(kDeflated); deflated != json.end()) {
    return BodyPiece{.text = TRY(TextOf(*deflated))};
  }
  for (int i = 1; i < static_cast<int>(std::size(kPieces)); ++i) {
    const auto value = json.find(kPieces[i]);
    if (value == json.end()) continue;
    BodyPiece piece{.kind = static_cast<BodyPiece::Kind>(i)};
    if (piece.kind == BodyPiece::Kind::kFile) {
      if (!value->is_string()) break;
      piece.text = value->get<std::string>();
      return piece;
    }
    const bool is_pair = value->is_array() && value->size() == 2;
    const Json& first = is_pair ? (*value)[0] : *value;
    const Json& second = is_pair ? (*value)[1] : *value;
    if (is_pair != HasCall(piece.kind) || !first.is_number_unsigned() || !second.is_number_unsigned()) break;
    piece.first = first.get<std::uint64_t>();
    if (is_pair) piece.second = second.get<std::uint64_t>();
    return piece;
  }
  return NotA("piece");
}

}  // namespace

std::string PackedLiteral(std::string_view text) {
  std::string literal;
  AppendJsonString(literal, text);
  if (text.size() < kShortestPacked || text.size() > kLongestPacked) return literal;
  const std::string packed = Deflate(text);
  if (packed.size() * kMostPacked < text.size()) return literal;
  std::string deflated = DumpJson({{kDeflated, EncodeBase64Url(packed)}});
  return deflated.size() < literal.size() ? deflated : literal;
}

namespace {

Result<ToldModule> ModuleFromJson(const Json& json) {
  if (json.is_string()) return ToldModule{json.get<std::string>()};
  if (!json.is_array() || json.size() != 2 || !json[0].is_string() || !json[1].is_number_unsigned()) {
    return NotA("module");
  }
  return ToldModule{json[0].get<std::string>(), json[1].get<std::uint64_t>()};
}

const char* NameOf(ToolOrigin::Kind kind) { return kind == ToolOrigin::Kind::kClient ? "client" : "server"; }

// Adds the tools of one origin to the list.
Result<void> ReadTools(const Json& json, std::vector<ToldTool>& tools) {
  JsonReader reader(json, "request");
  ToolOrigin origin{.version = reader.OptionalString("version").value_or(""),
                    .revision = reader.OptionalString("revision").value_or("")};
  origin.kind = reader.Find("client") != nullptr ? ToolOrigin::Kind::kClient : ToolOrigin::Kind::kServer;
  origin.name = reader.String(NameOf(origin.kind));
  const Json* const offers = reader.Find("tools");
  if (reader.error() || offers == nullptr || !offers->is_object()) return NotA("tool");
  for (const auto& [name, digest] : offers->items()) {
    if (!digest.is_string()) return NotA("tool");
    origin.digest = digest.get<std::string>();
    tools.push_back({name, origin});
  }
  return {};
}

}  // namespace

namespace {

// Tools of one origin. No name is there twice.
struct ToolsOfOrigin {
  std::span<const ToldTool> tools;
};

std::vector<ToolsOfOrigin> ByOrigin(std::span<const ToldTool> tools) {
  std::vector<ToolsOfOrigin> groups;
  std::set<std::string_view> names;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const auto of = [](const ToolOrigin& each) { return std::tie(each.kind, each.name, each.version, each.revision); };
    const bool is_same = i > begin && of(tools[i].origin) == of(tools[begin].origin);
    if (is_same && names.insert(tools[i].name).second) continue;
    if (i > begin) groups.push_back({tools.subspan(begin, i - begin)});
    begin = i;
    names = {tools[i].name};
  }
  if (begin < tools.size()) groups.push_back({tools.subspan(begin)});
  return groups;
}

void Write(auto& out, const ToolsOfOrigin& group) {
  const ToolOrigin& origin = group.tools.front().origin;
  out[NameOf(origin.kind)] = origin.name;
  if (!origin.version.empty()) out["version"] = origin.version;
  if (!origin.revision.empty()) out["revision"] = origin.revision;
  WriteObject(out, "tools", [&](auto& tools) {
    for (const auto& [name, of] : group.tools) tools[name] = of.digest;
  });
}

Json ToJson(const ToolsOfOrigin& group) {
  Json json = Json::object();
  Write(json, group);
  return json;
}

void AppendJson(std::string& out, const ToolsOfOrigin& group) {
  AppendJsonObject(out, [&](auto& object) { Write(object, group); });
}

}  // namespace

Json ToJson(const std::vector<ToldTool>& tools) {
  Json list = Json::array();
  for (const ToolsOfOrigin& group : ByOrigin(tools)) list.push_back(ToJson(group));
  return list;
}

std::size_t AttemptOf(const std::vector<SentRequest>& requests, std::size_t index) {
  const SentRequest& of = requests[index];
  std::size_t attempt = 0;
  for (std::size_t i = index; i-- > 0;) {
    const SentRequest& each = requests[i];
    if (each.round != of.round || each.purpose != of.purpose || each.call_id != of.call_id) continue;
    // A round has one answer, so earlier requests for it failed.
    const bool has_failed = each.response ? !each.response->error.empty() : of.purpose == SentRequest::Purpose::kTurn;
    if (!has_failed) break;
    ++attempt;
  }
  return attempt;
}

std::string_view ToString(SentResponse::Finish finish) { return kFinishes[static_cast<int>(finish)]; }

namespace {

// Leaves out `usage`.
void Write(auto& out, const SentResponse& response, const std::string& asked, const TokenUsage& usage) {
  out["ms"] = response.ms;
  if (response.first_token_ms) out["first_token_ms"] = *response.first_token_ms;
  if (!response.error.empty()) out["error"] = response.error;
  if (response.finish != SentResponse::Finish::kStop) out["finish"] = ToString(response.finish);
  if (response.model != (response.error.empty() ? asked : "")) out["model"] = response.model;
  if (response.usage != usage) WriteObject(out, "usage", [&](auto& object) { WriteUsage(object, response.usage); });
  if (!response.request_id.empty()) out["request_id"] = response.request_id;
}

}  // namespace

Json ToJson(const SentResponse& response, const std::string& asked) {
  Json json = Json::object();
  Write(json, response, asked, TokenUsage{});
  return json;
}

Result<SentResponse> SentResponseFromJson(const Json& json, const std::string& asked) {
  JsonReader reader(json, "response");
  SentResponse response{.error = reader.OptionalString("error").value_or(""),
                        .ms = reader.Integer("ms"),
                        .request_id = reader.OptionalString("request_id").value_or("")};
  response.model = reader.OptionalString("model").value_or(response.error.empty() ? asked : "");
  if (reader.Find("first_token_ms") != nullptr) response.first_token_ms = reader.Integer("first_token_ms");
  if (const auto finish = reader.OptionalString("finish")) {
    const auto* const found = std::find(std::begin(kFinishes), std::end(kFinishes), *finish);
    if (found == std::end(kFinishes)) return NotA("finish");
    response.finish = static_cast<SentResponse::Finish>(found - std::begin(kFinishes));
  }
  if (const Json* usage = reader.Find("usage")) {
    JsonReader inner(*usage, "usage");
    response.usage = ReadUsage(inner);
    if (inner.error()) reader.Reject("usage");
  }
  if (reader.error()) return Fail(*reader.error());
  return response;
}

static void Write(auto& out, const RequestMarks& marks) {
  out["place"] = ToJson(marks.place);
  if (!marks.heads.empty()) WriteList(out, "heads", marks.heads);
  if (marks.tail) out["tail"] = ToJson(*marks.tail);
  if (marks.depth > 0) out["depth"] = marks.depth;
  if (marks.has_files) out["has_files"] = true;
  if (!marks.modules.empty()) out["names"] = marks.modules;
}

Json ToJson(const RequestMarks& marks) {
  Json json = Json::object();
  Write(json, marks);
  return json;
}

void AppendJson(std::string& out, const RequestMarks& marks) {
  AppendJsonObject(out, [&](auto& object) { Write(object, marks); });
}

Result<RequestMarks> RequestMarksFromJson(const Json& json) {
  JsonReader reader(json, "request");
  const Json* place = reader.Find("place");
  if (place == nullptr) return NotA("place");
  RequestMarks marks{.place = TRY(PlaceFromJson(*place))};
  if (reader.Find("heads") != nullptr) {
    if (const Json* heads = reader.Array("heads")) {
      for (const Json& mark : *heads) marks.heads.push_back(TRY(MarkFromJson(mark)));
    }
  }
  if (const Json* tail = reader.Find("tail")) marks.tail = TRY(MarkFromJson(*tail));
  if (reader.Find("depth") != nullptr) marks.depth = static_cast<std::uint32_t>(reader.Integer("depth"));
  marks.has_files = reader.Bool("has_files", false);
  marks.modules = reader.OptionalString("names").value_or("");
  if (reader.error()) return Fail(*reader.error());
  return marks;
}

std::string_view ToString(SentRequest::Purpose purpose) { return kPurposes[static_cast<int>(purpose)]; }

static void Write(auto& out, const RecordedRequest& recorded) {
  const SentRequest& request = recorded.request;
  out["at"] = FormatTimestamp(request.at);
  if (recorded.model == nullptr || request.model != *recorded.model) out["model"] = request.model;
  out["digest"] = request.body.digest;
  out["bytes"] = request.body.bytes;
  WriteList(out, "body", request.body.pieces);
  if (request.round > 0) out["round"] = request.round;
  if (request.purpose != SentRequest::Purpose::kTurn) out["purpose"] = ToString(request.purpose);
  if (!request.address.empty()) out["address"] = request.address;
  if (!request.call_id.empty()) out["call_id"] = request.call_id;
  if (request.modules) WriteList(out, "modules", *request.modules);
  if (!request.tools.empty()) WriteList(out, "tools", ByOrigin(request.tools));
  if (request.body.before) out["before"] = ToJson(*request.body.before);
  if (request.response) {
    WriteObject(out, "response", [&](auto& response) {
      Write(response, *request.response, request.model, recorded.usage != nullptr ? *recorded.usage : TokenUsage{});
    });
  }
}

Json ToJson(const RecordedRequest& recorded) {
  Json json = Json::object();
  Write(json, recorded);
  return json;
}

void AppendJson(std::string& out, const RecordedRequest& recorded) {
  AppendJsonObject(out, [&](auto& object) { Write(object, recorded); });
}

Json ToJson(const SentRequest& request) { return ToJson(RecordedRequest{request}); }

void AppendJson(std::string& out, const SentRequest& request) { AppendJson(out, RecordedRequest{request}); }

Result<SentRequest> SentRequestFromJson(const Json& json, const std::string& model) {
  JsonReader reader(json, "request");
  SentRequest request{.at = reader.Time("at"),
                      .model = reader.OptionalString("model").value_or(model),
                      .address = reader.OptionalString("address").value_or(""),
                      .call_id = reader.OptionalString("call_id").value_or("")};
  if (reader.Find("round") != nullptr) request.round = static_cast<std::uint32_t>(reader.Integer("round"));
  if (reader.Find("modules") != nullptr) {
    request.modules.emplace();
    if (const Json* modules = reader.Array("modules")) {
      for (const Json& each : *modules) request.modules->push_back(TRY(ModuleFromJson(each)));
    }
  }
  if (reader.Find("tools") != nullptr) {
    if (const Json* tools = reader.Array("tools")) {
      for (const Json& each : *tools) TRY(ReadTools(each, request.tools));
    }
  }
  if (request.model.empty() && reader.Find("model") == nullptr) return NotA("model");
  if (const Json* response = reader.Find("response")) {
    request.response = TRY(SentResponseFromJson(*response, request.model));
  }
  request.body.digest = reader.String("digest");
  request.body.bytes = static_cast<std::uint64_t>(reader.Integer("bytes"));
  if (const auto purpose = reader.OptionalString("purpose")) {
    const auto* const found = std::find(std::begin(kPurposes), std::end(kPurposes), *purpose);
    if (found == std::end(kPurposes)) return NotA("purpose");
    request.purpose = static_cast<SentRequest::Purpose>(found - std::begin(kPurposes));
  }
  if (const Json* before = reader.Find("before")) request.body.before = TRY(PlaceFromJson(*before));
  if (const Json* pieces = reader.Array("body")) {
    for (const Json& piece : *pieces) request.body.pieces.push_back(TRY(PieceFromJson(piece)));
  }
  if (reader.error()) return Fail(*reader.error());
  return request;
}

}  // namespace reprise
