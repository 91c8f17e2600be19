#include "crypto/proof.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "base/json.h"
#include "base/system.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "crypto/public_key.h"

namespace reprise {
namespace {

constexpr std::string_view kProofType = "reprise-proof";
constexpr int kProofVersion = 1;
// Before what is signed, so that the signature means nothing elsewhere.
constexpr std::string_view kSigned = "reprise-proof-1\n";
constexpr std::string_view kLeaf("\0", 1), kNode("\1", 1);  // before what is hashed (RFC 6962, section 2.1)
constexpr std::size_t kHashDigits = 64, kSaltDigits = 64, kKeyDigits = 64, kSignatureDigits = 128;  // digits
constexpr std::size_t kMostLeaves = 1'000'000;

tl::unexpected<Error> Changed(std::string what) { return Fail(ErrorCode::kCorruption, std::move(what)); }

bool IsHex(std::string_view text) {
  return text.size() % 2 == 0 && text.find_first_not_of(kHexDigits) == std::string_view::npos;
}
bool IsHexOf(std::string_view text, std::size_t digits) { return text.size() == digits && IsHex(text); }

std::string HashOf(const std::string& salt, std::string_view text) {
  return DigitsOf(Sha256Bytes({kLeaf, BytesOf(salt), text}));
}

// The bytes of the root: both halves hashed together, of which the left one has the largest power of two of leaves.
std::string RootOf(std::span<const Proof::Leaf> leaves) {
  if (leaves.size() == 1) return BytesOf(leaves.front().hash);
  const std::size_t left = std::bit_floor(leaves.size() - 1);
  return Sha256Bytes({kNode, RootOf(leaves.first(left)), RootOf(leaves.subspan(left))});
}

// Whether `json` is an object of these members; those from `optional` on may be missing.
bool HasMembers(const Json& json, std::initializer_list<std::string_view> names, std::size_t optional) {
  if (!json.is_object()) return false;
  std::size_t found = 0, needed = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_there = json.contains(names.begin()[i]);
    found += is_there ? 1 : 0;
    needed += is_there && i < optional ? 1 : 0;
  }
  return needed == optional && found == json.size();
}

Result<Proof::Leaf> ReadLeaf(const Json& json, std::size_t number) {
  const auto wrong = [&](const std::string& what) { return Changed("leaf " + std::to_string(number) + " " + what); };
  if (!HasMembers(json, {"hash", "salt", "text"}, 1))
    return wrong("must have exactly the members hash, salt and text, or only a hash");
  Proof::Leaf leaf{.hash = TextMember(json, "hash")};
  if (!IsHexOf(leaf.hash, kHashDigits)) return wrong("has no valid hash");
  if (json.size() == 1) return leaf;
  leaf.salt = TextMember(json, "salt");
  if (!IsHexOf(leaf.salt, kSaltDigits)) return wrong("has no valid salt");
  if (!json.contains("text") || !json["text"].is_string()) return wrong("has a salt, but no text");
  leaf.text = TextMember(json, "text");
  return leaf;
}

}  // namespace

std::string DigitsOf(std::string_view bytes) {
  std::string digits;
  AppendHex(digits, bytes);
  return digits;
}

std::string BytesOf(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(HexDigit(digits[i]) * 16 + HexDigit(digits[i + 1]));
  }
  return bytes;
}

Proof MakeProof(const std::vector<std::string>& texts, const SigningKey& key, Timestamp at, std::string_view program) {
  Proof proof;
  for (const std::string& text : texts) {
    Proof::Leaf leaf{.salt = RandomHex(kSaltDigits / 2), .text = text};
    leaf.hash = HashOf(leaf.salt, text);
    proof.leaves.push_back(std::move(leaf));
  }
  proof.statement = DumpJson({{"type", kProofType},
                              {"version", kProofVersion},
                              {"leaves", texts.size()},
                              {"root", DigitsOf(RootOf(proof.leaves))},
                              {"key", DigitsOf(key.public_key())},
                              {"made_at", FormatTimestamp(at)},
                              {"program", program}});
  proof.signature = DigitsOf(key.Sign(std::string(kSigned) + proof.statement));
  return proof;
}

std::string WriteProof(const Proof& proof) {
  std::string text = "{\"statement\":" + DumpJson(proof.statement) + ",\n\"signature\":\"" + proof.signature + "\",\n";
  if (!proof.time_stamp.empty()) text += "\"time_stamp\":\"" + proof.time_stamp + "\",\n";
  text += "\"leaves\":[";
  for (std::size_t i = 0; i < proof.leaves.size(); ++i) {
    const Proof::Leaf& leaf = proof.leaves[i];
    text += (i == 0 ? "\n{\"hash\":\"" : ",\n{\"hash\":\"") + leaf.hash + "\"";
    if (!leaf.is_left_out()) {
      text += ",\"salt\":\"" + leaf.salt + "\",\"text\":";
      AppendJsonString(text, leaf.text);
    }
    text += "}";
  }
  return text + "\n]}\n";
}

Result<Proof> ReadProof(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json) return Changed("the bundle is not JSON: " + json.error().message);
  if (!HasMembers(*json, {"statement", "signature", "leaves", "time_stamp"}, 3)) {
    return Changed("the bundle must have exactly the members statement, signature and leaves, and may have time_stamp");
  }
  Proof proof{.statement = TextMember(*json, "statement"), .signature = TextMember(*json, "signature")};
  if (!IsHexOf(proof.signature, kSignatureDigits)) return Changed("the signature is malformed");
  if (json->contains("time_stamp")) {
    proof.time_stamp = TextMember(*json, "time_stamp");
    if (proof.time_stamp.empty() || !IsHex(proof.time_stamp)) return Changed("the time stamp is malformed");
  }
  const Json& leaves = (*json)["leaves"];
  if (!leaves.is_array() || leaves.empty() || leaves.size() > kMostLeaves) return Changed("the bundle has no leaves");
  for (const Json& leaf : leaves) proof.leaves.push_back(TRY(ReadLeaf(leaf, proof.leaves.size() + 1)));
  return proof;
}

Result<ProofStatement> CheckProof(const Proof& proof) {
  const auto json = ParseJson(proof.statement);
  const auto has = [&](Json::value_t type, std::initializer_list<const char*> members) {
    return std::ranges::all_of(members, [&](const char* name) { return (*json)[name].type() == type; });
  };
  if (!json || !HasMembers(*json, {"type", "version", "leaves", "root", "key", "made_at", "program"}, 7) ||
      !has(Json::value_t::number_unsigned, {"version", "leaves"}) ||
      !has(Json::value_t::string, {"type", "root", "key", "made_at", "program"}) ||
      TextMember(*json, "type") != kProofType || (*json)["version"] != kProofVersion) {
    return Changed("the statement is not a statement of version 1");
  }
  const ProofStatement statement{.root = TextMember(*json, "root"),
                                 .key = TextMember(*json, "key"),
                                 .made_at = TextMember(*json, "made_at"),
                                 .program = TextMember(*json, "program"),
                                 .leaves = (*json)["leaves"].get<std::size_t>()};
  const auto key = IsHexOf(statement.key, kKeyDigits) ? PublicKey::FromEd25519(BytesOf(statement.key)) : std::nullopt;
  if (!key || !key->Verifies(std::string(kSigned) + proof.statement, BytesOf(proof.signature))) {
    return Changed("the signature is not that of the statement by its key");
  }
  for (std::size_t i = 0; i < proof.leaves.size(); ++i) {
    const Proof::Leaf& leaf = proof.leaves[i];
    if (!leaf.is_left_out() && HashOf(leaf.salt, leaf.text) != leaf.hash) {
      return Changed("leaf " + std::to_string(i + 1) + " was changed: its hash is another one");
    }
  }
  if (proof.leaves.size() != statement.leaves) {
    return Changed("there are " + std::to_string(proof.leaves.size()) + " leaves, and " +
                   std::to_string(statement.leaves) + " were signed");
  }
  if (DigitsOf(RootOf(proof.leaves)) != statement.root) return Changed("the hashes of the leaves are not those signed");
  return statement;
}

std::string StampedDigest(const Proof& proof) { return Sha256Bytes({BytesOf(proof.signature)}); }

}  // namespace reprise
