#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/signing_key.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// A signed list of texts (leaves) of which any can be left out: what is left still verifies, and nobody can guess what
// is gone. docs/proof.md describes the file so that others can write a verifier. Digests, salts, keys and signatures
// are hexadecimal digits here as there.
struct Proof {
  struct Leaf {
    std::string hash{};
    std::string salt{}, text{};  // empty if it is left out
    bool is_left_out() const { return salt.empty(); }
    void LeaveOut() { salt.clear(), text.clear(); }
  };
  std::string statement{};  // JSON; signed as it is
  std::string signature{};
  std::vector<Leaf> leaves{};
  std::string time_stamp{};  // a reply of RFC 3161 for StampedDigest; empty: none
};

// What the signature covers.
struct ProofStatement {
  std::string root, key, made_at, program;
  std::size_t leaves = 0;
};

// How a bundle writes bytes: as lower-case hexadecimal digits. REQUIRES of BytesOf: ReadProof accepted them.
std::string DigitsOf(std::string_view bytes);
std::string BytesOf(std::string_view digits);

// With a random salt for each text. REQUIRES: `texts` is not empty, and all are UTF-8.
Proof MakeProof(const std::vector<std::string>& texts, const SigningKey& key, Timestamp at, std::string_view program);

// The bundle as text, a leaf on each line.
std::string WriteProof(const Proof& proof);
// Reads that text. kCorruption if its form is wrong; the message says where.
Result<Proof> ReadProof(std::string_view text);

// Checks everything but the time stamp. kCorruption; the message names the changed leaf or part.
Result<ProofStatement> CheckProof(const Proof& proof);

// The 32 bytes that a time stamp is for: those of the signature's digest.
std::string StampedDigest(const Proof& proof);

}  // namespace reprise
