#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/try.h"
#include "domain/codec.h"
#include "domain/json_reader.h"

namespace reprise {
namespace {

constexpr std::string_view kPurposes[] = {"turn", "summary", "sub_agent"};
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

Json ToJson(const BodyMark& mark) { return {mark.bytes, mark.digest}; }

Result<BodyMark> MarkFromJson(const Json& json) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_number_unsigned() || !json[1].is_string()) {
    return NotA("mark");
  }
  return BodyMark{json[0].get<std::uint64_t>(), json[1].get<std::string>()};
}

Json ToJson(const BodyPiece& piece) {
  if (piece.kind == BodyPiece::Kind::kText) return piece.text;
  if (piece.kind == BodyPiece::Kind::kFile) return {{"file", piece.text}};
  const Json value = HasCall(piece.kind) ? Json{piece.first, piece.second} : Json(piece.first);
  return {{kPieces[static_cast<int>(piece.kind)], value}};
}

Result<BodyPiece> PieceFromJson(const Json& json) {
  if (json.is_string()) return BodyPiece{.text = json.get<std::string>()};
  if (!json.is_object() || json.size() != 1) return NotA("piece");
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

Json ToJson(const RequestMarks& marks) {
  Json json = {{"place", ToJson(marks.place)}};
  if (!marks.heads.empty()) {
    json["heads"] = Json::array();
    for (const BodyMark& mark : marks.heads) json["heads"].push_back(ToJson(mark));
  }
  if (marks.tail) json["tail"] = ToJson(*marks.tail);
  if (marks.depth > 0) json["depth"] = marks.depth;
  if (marks.has_files) json["has_files"] = true;
  if (!marks.modules.empty()) json["names"] = marks.modules;
  return json;
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

Json ToJson(const SentRequest& request) {
  Json json = {{"at", FormatTimestamp(request.at)},
               {"model", request.model},
               {"digest", request.body.digest},
               {"bytes", request.body.bytes},
               {"body", Json::array()}};
  if (request.round > 0) json["round"] = request.round;
  if (request.purpose != SentRequest::Purpose::kTurn) json["purpose"] = ToString(request.purpose);
  if (!request.address.empty()) json["address"] = request.address;
  if (request.modules) {
    json["modules"] = request.modules->names;
    if (!request.modules->bytes.empty()) json["module_bytes"] = request.modules->bytes;
  }
  if (request.body.before) json["before"] = ToJson(*request.body.before);
  for (const BodyPiece& piece : request.body.pieces) json["body"].push_back(ToJson(piece));
  return json;
}

Result<SentRequest> SentRequestFromJson(const Json& json) {
  JsonReader reader(json, "request");
  SentRequest request{.at = reader.Time("at"),
                      .model = reader.String("model"),
                      .address = reader.OptionalString("address").value_or("")};
  if (reader.Find("round") != nullptr) request.round = static_cast<std::uint32_t>(reader.Integer("round"));
  if (reader.Find("modules") != nullptr) {
    request.modules = SentModules{.names = reader.Strings("modules")};
    if (reader.Find("module_bytes") != nullptr) request.modules->bytes = reader.Sizes("module_bytes");
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
