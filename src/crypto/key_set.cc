#include "crypto/key_set.h"

#include <simdjson.h>

#include <algorithm>

#include "base/system.h"
#include "base/text.h"

namespace reprise {
namespace {

using simdjson::dom::element;

// Parses a text with keys in it. Not our usual JSON library, which leaves copies of them in buffers that it frees:
// here all strings are in one buffer, and that can be wiped.
class SecretParser {
 public:
  ~SecretParser() {
    // A string takes five bytes more in the buffer, and three in the text.
    if (strings_ > 0) WipeBytes(parser_.doc.string_buf.get(), strings_);
  }

  // False if it is not JSON, or a member comes twice. `root` is valid as long as the parser is.
  bool Parse(std::string_view text, element& root) {
    SecretText padded;
    padded.reserve(text.size() + simdjson::SIMDJSON_PADDING);
    Append(padded, text);
    const auto error = parser_.parse(padded.data(), padded.size(), /*realloc_if_needed=*/false).get(root);
    WipeStack();
    if (parser_.doc.string_buf) strings_ = padded.size() * 5 / 3;
    return error == simdjson::SUCCESS && !HasDuplicates(root);
  }

 private:
  static bool HasDuplicates(const element& value) {
    if (value.is_array()) {
      const simdjson::dom::array elements(value);
      return std::any_of(elements.begin(), elements.end(), HasDuplicates);
    }
    if (!value.is_object()) return false;
    std::vector<std::string_view> names;
    for (const auto& [name, member] : simdjson::dom::object(value)) {
      if (HasDuplicates(member)) return true;
      names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return std::adjacent_find(names.begin(), names.end()) != names.end();
  }

  simdjson::dom::parser parser_;
  std::size_t strings_ = 0;
};

tl::unexpected<Error> InvalidKeys(std::string what) {
  return Fail(Refused(ErrorCode::kCorruption, "key_file_invalid", "the key file cannot be used: " + std::move(what)));
}

// A kid stands in every sealed file as it is, so it holds nothing that JSON would escape.
bool IsKid(std::string_view kid) {
  static constexpr std::string_view kOther = "-._~:+/=@";
  return !kid.empty() && kid.size() <= 128 && std::all_of(kid.begin(), kid.end(), [](char c) {
    return IsAsciiAlnum(c) || kOther.find(c) != std::string_view::npos;
  });
}

// A member that is a string; else a view without data.
std::string_view Text(const element& object, std::string_view name) {
  std::string_view text;
  return object[name].get(text) == simdjson::SUCCESS ? text : std::string_view();
}
bool IsThere(const element& object, std::string_view name) { return object[name].error() == simdjson::SUCCESS; }

Result<KeySet::Key> KeyFromJwk(const element& jwk) {
  if (Text(jwk, "kty") != "oct") return InvalidKeys("a key is not of type oct");
  if (IsThere(jwk, "alg") && Text(jwk, "alg") != "A256KW") return InvalidKeys("a key is not for A256KW");
  if (IsThere(jwk, "use") && Text(jwk, "use") != "enc") return InvalidKeys("a key is not for encryption");
  const std::string_view kid = Text(jwk, "kid"), k = Text(jwk, "k");
  if (!IsKid(kid)) return InvalidKeys("a key has no usable kid");
  if (k.data() == nullptr) return InvalidKeys("a key has no k");
  auto bytes = DecodeBase64Url(k);
  if (!bytes) return InvalidKeys("k is not base64url");
  auto secret = SecretKey::FromBytes(*bytes);
  WipeBytes(bytes->data(), bytes->size());
  if (!secret) return InvalidKeys("a key does not have 256 bits");
  return KeySet::Key{.kid = std::string(kid), .secret = *std::move(secret)};
}

KeySet::Key NewKey() { return {.kid = "key_" + RandomHex(12), .secret = SecretKey::Random()}; }
KeySet::Key CopyOf(const KeySet::Key& key) { return {.kid = key.kid, .secret = key.secret.Clone()}; }

}  // namespace

KeySet KeySet::Of(Key key) {
  std::vector<Key> keys;
  keys.push_back(std::move(key));
  return KeySet(std::move(keys));
}

KeySet KeySet::Generate() { return Of(NewKey()); }

Result<KeySet> KeySet::Parse(std::string_view jwk_set) {
  SecretParser parser;
  element root;
  simdjson::dom::array list;
  if (!parser.Parse(jwk_set, root) || root["keys"].get(list) != simdjson::SUCCESS) {
    return InvalidKeys("it is not a JWK Set");
  }
  std::vector<Key> keys;
  keys.reserve(list.size());
  for (const element jwk : list) {
    auto key = KeyFromJwk(jwk);
    if (!key) return Fail(std::move(key.error()));
    const bool twice = std::any_of(keys.begin(), keys.end(), [&](const Key& other) { return other.kid == key->kid; });
    if (twice) return InvalidKeys("two keys have the same kid");
    keys.push_back(*std::move(key));
  }
  if (keys.empty()) return InvalidKeys("it holds no key");
  return KeySet(std::move(keys));
}

SecretText KeySet::ToJwkSet() const {
  SecretText text;
  Append(text, R"({"keys":[)");
  for (const Key& key : keys_) {
    if (&key != &current()) Append(text, ",");
    Append(text, R"({"kty":"oct","kid":")" + key.kid + R"(","alg":"A256KW","use":"enc","k":")");
    std::string k = EncodeBase64Url(key.secret.bytes());
    Append(text, k);
    WipeBytes(k.data(), k.size());
    Append(text, "\"}");
  }
  Append(text, "]}\n");
  return text;
}

KeySet KeySet::BoundTo(std::string tenant) const {
  std::vector<Key> keys;
  for (const Key& key : keys_) keys.push_back(CopyOf(key));
  KeySet bound(std::move(keys));
  bound.tenant_ = std::move(tenant);
  return bound;
}

KeySet KeySet::Before(const KeySet& others) const {
  std::vector<Key> keys;
  for (const Key& key : keys_) keys.push_back(CopyOf(key));
  for (const Key& key : others.keys_) keys.push_back(CopyOf(key));
  return KeySet(std::move(keys)).BoundTo(tenant_);
}

KeySet KeySet::WithNewKey() const {
  std::vector<Key> keys;
  keys.push_back(NewKey());
  for (const Key& key : keys_) keys.push_back(CopyOf(key));
  return KeySet(std::move(keys)).BoundTo(tenant_);
}

KeySet KeySet::WithoutOldKeys() const { return Of(CopyOf(current())).BoundTo(tenant_); }

const KeySet::Key* KeySet::Find(std::string_view kid) const {
  const auto key = std::find_if(keys_.begin(), keys_.end(), [&](const Key& candidate) { return candidate.kid == kid; });
  return key == keys_.end() ? nullptr : &*key;
}

}  // namespace reprise
