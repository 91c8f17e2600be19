#include "crypto/proof.h"

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "crypto/digest.h"
#include "crypto/public_key.h"
#include "crypto/secret_key.h"
#include "support/test.h"

namespace reprise::proof_test {
namespace {

SigningKey KeyOf(char byte) { return SigningKey(*SecretKey::FromBytes(std::string(SecretKey::kBytes, byte))); }

std::vector<std::string> Texts(std::size_t count) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i)
    texts.push_back(R"({"kind":"said","text":"number )" + std::to_string(i) + "\"}");
  return texts;
}
Proof ProofOf(std::size_t leaves) { return MakeProof(Texts(leaves), KeyOf('k'), Timestamp(), "reprise test"); }

// The same bundle as JSON text, whatever way its characters are written.
bool SaysTheSame(const std::string& a, const std::string& b) {
  const auto left = ParseJson(a), right = ParseJson(b);
  return left && right && *left == *right;
}

}  // namespace

TEST_CASE("SigningKey: signs as RFC 8032 says", "[crypto]") {
  // Section 7.1, test 2.
  std::string seed;
  const std::string digits = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    seed += static_cast<char>(HexDigit(digits[i]) * 16 + HexDigit(digits[i + 1]));
  }
  const SigningKey key(*SecretKey::FromBytes(seed));
  std::string public_key, signature;
  AppendHex(public_key, key.public_key());
  AppendHex(signature, key.Sign("\x72"));
  CHECK(public_key == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  CHECK(
      signature ==
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302ae"
      "eb00d291612bb0c00");
  CHECK(PublicKey::FromEd25519(key.public_key())->Verifies("\x72", key.Sign("\x72")));
  CHECK_FALSE(PublicKey::FromEd25519("short"));
}

TEST_CASE("Proof: every number of leaves verifies, and its text reads as the same", "[crypto]") {
  for (const std::size_t leaves : {1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 65, 1000}) {
    const Proof proof = ProofOf(leaves);
    const auto read = ReadProof(WriteProof(proof));
    REQUIRE(read);
    CHECK(WriteProof(*read) == WriteProof(proof));
    const auto statement = CheckProof(*read);
    REQUIRE(statement);
    CHECK(statement->leaves == leaves);
    CHECK(statement->made_at == "1970-01-01T00:00:00.000Z");
  }
}

TEST_CASE("Proof: the tree is that of RFC 6962, written out here for three leaves", "[crypto]") {
  const Proof proof = ProofOf(3);
  const auto bytes = [](const std::string& digits) {
    std::string text;
    for (std::size_t i = 0; i < digits.size(); i += 2) {
      text += static_cast<char>(HexDigit(digits[i]) * 16 + HexDigit(digits[i + 1]));
    }
    return text;
  };
  const auto leaf = [&](std::size_t i) {
    return Sha256Bytes({std::string_view("\0", 1), bytes(proof.leaves[i].salt), proof.leaves[i].text});
  };
  const std::string left = Sha256Bytes({"\1", leaf(0), leaf(1)});
  CHECK(bytes(CheckProof(proof)->root) == Sha256Bytes({"\1", left, leaf(2)}));
}

TEST_CASE("Proof: any leaves can be left out, and nothing of them stays", "[crypto]") {
  const Proof whole = ProofOf(40);
  Proof less = whole;
  for (const std::size_t i : {0, 3, 4, 5, 21, 39}) less.leaves[i].LeaveOut();
  const std::string text = WriteProof(less);
  REQUIRE(CheckProof(*ReadProof(text)));
  for (const std::size_t i : {0, 3, 4, 5, 21, 39}) {
    const Proof::Leaf& gone = whole.leaves[i];
    CHECK(text.find(gone.salt) == std::string::npos);
    CHECK(text.find(Json(gone.text).dump()) == std::string::npos);
    // Who guesses the text rightly cannot tell: no hash of it without its salt is in the bundle.
    for (const Proof::Leaf& other : less.leaves) {
      std::string guess;
      AppendHex(guess, Sha256Bytes({std::string_view("\0", 1), gone.text}));
      CHECK(other.hash != guess);
    }
  }
  for (Proof::Leaf& leaf : less.leaves) leaf.LeaveOut();
  CHECK(CheckProof(*ReadProof(WriteProof(less))));
}

TEST_CASE("Proof: two proofs of the same texts share no salt and no hash", "[crypto]") {
  const Proof one = ProofOf(100), other = ProofOf(100);
  for (std::size_t i = 0; i < one.leaves.size(); ++i) {
    CHECK(one.leaves[i].salt.size() == 64);
    CHECK(one.leaves[i].salt != other.leaves[i].salt);
    CHECK(one.leaves[i].hash != other.leaves[i].hash);
    if (i > 0) CHECK(one.leaves[i].salt != one.leaves[i - 1].salt);
  }
}

TEST_CASE("Proof: 10,000 random changes of a bundle are all named", "[crypto]") {
  const std::string whole = WriteProof([] {
    Proof proof = ProofOf(12);
    proof.leaves[4].LeaveOut();
    return proof;
  }());
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  std::size_t named = 0, same = 0;
  while (named < 10'000) {
    std::string text = whole;
    const std::size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        text.erase(at, 1 + below(80));
        break;
      case 2:
        text.insert(at, 1, "0123456789abcdef\"{}[],: x"[below(25)]);
        break;
      case 3:
        std::swap(text[at], text[below(text.size())]);
        break;
      default:
        text.insert(at, text.substr(below(text.size()), 1 + below(200)));
        break;
    }
    if (SaysTheSame(text, whole)) {
      REQUIRE(++same < 5'000);
      continue;
    }
    const auto proof = ReadProof(text);
    const auto checked = proof ? CheckProof(*proof) : Fail(proof.error());
    INFO(text);
    REQUIRE_FALSE(checked);
    REQUIRE(checked.error().code == ErrorCode::kCorruption);
    REQUIRE_FALSE(checked.error().message.empty());
    ++named;
  }
}

TEST_CASE("Proof: what can be changed in its values is named by what was changed", "[crypto]") {
  const auto fault = [](const Proof& proof) {
    const auto checked = CheckProof(proof);
    return checked ? std::string() : checked.error().message;
  };
  Proof proof = ProofOf(9);
  proof.leaves[2].text += " ";
  CHECK(fault(proof) == "leaf 3 was changed: its hash is another one");
  proof = ProofOf(9);
  std::swap(proof.leaves[2], proof.leaves[3]);
  CHECK(fault(proof) == "the hashes of the leaves are not those signed");
  proof = ProofOf(9);
  proof.leaves.pop_back();
  CHECK(fault(proof) == "there are 8 leaves, and 9 were signed");
  proof = ProofOf(9);
  proof.leaves[1].LeaveOut();
  proof.leaves[1].hash[0] = proof.leaves[1].hash[0] == 'a' ? 'b' : 'a';
  CHECK(fault(proof) == "the hashes of the leaves are not those signed");
  proof = ProofOf(9);
  const Proof other = MakeProof(Texts(9), KeyOf('x'), Timestamp(), "reprise test");
  proof.signature = other.signature;
  CHECK(fault(proof) == "the signature is not that of the statement by its key");
  proof = ProofOf(9);
  proof.statement.back() = ' ';
  CHECK(fault(proof) == "the statement is not a statement of version 1");
}

TEST_CASE("Proof: other texts than bundles are refused", "[crypto]") {
  const std::string leaf = R"({"hash":")" + std::string(64, 'a') + "\"}";
  const std::string start = R"({"statement":"{}","signature":")" + std::string(128, '0') + R"(","leaves":[)";
  CHECK(ReadProof(start + leaf + "]}"));
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string("null"), std::string("\xff"), start + "]}",
        start + leaf + "],\"more\":1}", start + leaf + "],\"time_stamp\":\"0\"}",
        start + leaf + "],\"time_stamp\":\"\"}", start + R"({"hash":"AA"})" + "]}",
        start + R"({"hash":")" + std::string(64, 'A') + "\"}]}",
        start + R"({"hash":")" + std::string(64, 'a') + R"(","text":"x"}]})",
        start + R"({"hash":")" + std::string(64, 'a') + R"(","salt":")" + std::string(64, 'a') + "\"}]}",
        start + std::string(100, '[') + std::string(100, ']') + "]}"}) {
    const auto proof = ReadProof(text);
    INFO(text);
    REQUIRE_FALSE(proof);
    CHECK(proof.error().code == ErrorCode::kCorruption);
  }
}

}  // namespace reprise::proof_test
