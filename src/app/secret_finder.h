#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "reprise/interaction.h"
#include "reprise/result.h"

namespace re2 {
class RE2;
}

namespace reprise {

// Finds secrets in texts and replaces them by as many "x": known ones, words that look like keys of well-known
// services, and words that a person names; also those that JSON inside the text spells in other ways, such as "\/" and
// "\u0067". Each text stays as long as it was, and JSON stays JSON: quotes, control characters and escapes such as \n
// stay as they are. Not thread-safe.
class SecretFinder {
 public:
  // Ignores secrets of less than eight characters, which would match by chance, but not `words`.
  explicit SecretFinder(std::vector<std::string> secrets, const std::vector<std::string>& words = {});
  ~SecretFinder();

  // One more secret; no effect if it is known.
  void Learn(const std::string& secret);

  // Whether there was any.
  bool TakeFrom(std::string& text);
  // From all texts but those that name things, such as types, ids and digests.
  void TakeFrom(Json& json);
  // The same for a turn, without the digests of its requests, and with DigestArguments.
  Result<Interaction> TakenFrom(const Interaction& turn);

  // How often each kind of secret was found: "a token of GitHub".
  const std::map<std::string, std::size_t>& taken() const { return taken_; }
  void Forget() { taken_.clear(); }

 private:
  struct Known {
    std::string text, kind;
  };
  struct Place {
    std::size_t at, end;
    const std::string* kind;
    bool is_known;
  };
  void Know(const std::string& text, const std::string& kind);
  std::vector<Place> PlacesIn(const std::string& text) const;

  std::map<std::string, std::size_t> taken_;
  std::vector<Known> known_;
  std::vector<std::pair<std::string, std::unique_ptr<re2::RE2>>> kinds_;
};

// Makes the digests of arguments in turns anew, from which texts were taken: `before` has them still. Whose arguments
// are not there gets the digest of an empty text.
void DigestArguments(const Json& before, Json& turns);

}  // namespace reprise
