#include "client/archive/share_page.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "client/archive/proof_leaves.h"
#include "crypto/digest.h"
#include "domain/codec.h"
#include "engine/attachments.h"
#include "engine/request_body.h"

namespace reprise {
namespace {

constexpr std::size_t kMostOfContent = 256 * 1024, kMostOfAll = 32 * 1024 * 1024;

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Whether it may be shown. If not, its digest is hidden: who guesses a short text could check the guess by it.
bool MayShow(std::string text, const std::string& digest, SecretFinder* finder, std::set<std::string>& hidden) {
  if (finder == nullptr || !finder->TakeFrom(text)) return true;
  hidden.insert(digest);
  return false;
}

// The bodies of a turn's requests. Each but the first is what is new between the beginning and the end that it shares
// with the one before.
class Bodies {
 public:
  Bodies(SecretFinder* finder, std::set<std::string>& hidden) : finder_(finder), hidden_(hidden) {}

  void Add(const std::string& digest, std::string body) {
    if (!MayShow(body, digest, finder_, hidden_) || !IsUtf8(body) || size_ > kMostOfAll) return;
    const std::string_view before = last_;
    std::size_t head = static_cast<std::size_t>(std::ranges::mismatch(before, body).in1 - before.begin());
    while (head > 0 && head < body.size() && IsContinuation(body[head])) --head;
    std::size_t tail = 0;
    const std::size_t most = std::min(before.size(), body.size()) - head;
    while (tail < most && before[before.size() - 1 - tail] == body[body.size() - 1 - tail]) ++tail;
    while (tail > 0 && IsContinuation(body[body.size() - tail])) --tail;
    std::string fresh = body.substr(head, body.size() - tail - head);
    size_ += fresh.size();
    json_.push_back({{"digest", digest}, {"head", head}, {"tail", tail}, {"text", std::move(fresh)}});
    last_ = std::move(body);
  }
  Json Take() && { return std::move(json_); }

 private:
  SecretFinder* const finder_;
  std::set<std::string>& hidden_;
  std::string last_;
  std::size_t size_ = 0;
  Json json_ = Json::array();
};

Json BodiesOf(const Chat& chat, ChatReader& reader, SecretFinder* finder, std::set<std::string>& hidden) {
  FilesInStore files(reader.files(), chat.summary.id);
  RequestBodies stored(reader.store(), &files);
  Bodies bodies(finder, hidden);
  for (const Interaction& turn : chat.interactions) {
    if (!turn.record || !turn.record->requests) continue;
    const auto whole = reader.store().LoadInteraction(chat.summary.id, turn.id);
    for (std::size_t i = 0; whole && i < turn.record->requests->size(); ++i) {
      auto body = stored.Of(*whole, i);
      if (body) bodies.Add((*turn.record->requests)[i].body.digest, *std::move(body));
    }
  }
  return std::move(bodies).Take();
}

// The contents of changed files that are text.
Json ContentsOf(const Chat& chat, ChatReader& reader, SecretFinder* finder, std::set<std::string>& hidden) {
  std::set<std::string> digests;
  for (const Interaction& turn : chat.interactions) {
    for (std::string& digest : BlobsOf(turn)) digests.insert(std::move(digest));
  }
  Json contents = Json::object();
  std::size_t size = 0;
  for (const std::string& digest : digests) {
    auto content = reader.blobs().Get(chat.summary.id, digest);
    if (!content && finder != nullptr) hidden.insert(digest);  // who knows what is in it
    if (!content || !MayShow(*content, digest, finder, hidden)) continue;
    if (content->size() > kMostOfContent || size + content->size() > kMostOfAll) continue;
    if (!IsUtf8(*content) || content->find('\0') != std::string::npos) continue;
    size += content->size();
    contents[digest] = *std::move(content);
  }
  return contents;
}

std::string_view Between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

// For a policy: 'sha256-...'.
std::string PolicyHash(std::string_view text) { return "'sha256-" + EncodeBase64(Sha256Bytes({text})) + "'"; }

void Fill(std::string& page, std::string_view place, std::string_view text) {
  page.replace(page.find(place), place.size(), text);
}

}  // namespace

std::string SharePage(Proof proof, const Chat& chat, ChatReader& reader, SecretFinder* finder) {
  std::set<std::string> hidden;  // digests
  Json bodies = BodiesOf(chat, reader, finder, hidden), contents = ContentsOf(chat, reader, finder, hidden);
  std::set<std::size_t> leaves;
  for (std::size_t i = 0; finder != nullptr && i < proof.leaves.size(); ++i) {
    std::string text = proof.leaves[i].text;
    const bool has_digest =
        std::ranges::any_of(hidden, [&](const std::string& digest) { return text.find(digest) != std::string::npos; });
    if (finder->TakeFrom(text) || has_digest) leaves.insert(i);
  }
  LeaveOut(proof, leaves);
  const bool is_whole = std::ranges::none_of(proof.leaves, &Proof::Leaf::is_left_out);
  if (!is_whole) bodies = Json::array();  // they repeat what is gone
  // Only what a leaf has the digest of.
  std::string digests;
  for (const Proof::Leaf& leaf : proof.leaves) {
    if (leaf.text.find("sha256:") != std::string::npos) digests += leaf.text;
  }
  Json named = Json::object();
  for (auto each = contents.begin(); each != contents.end(); ++each) {
    if (digests.find(each.key()) != std::string::npos) named[each.key()] = std::move(*each);
  }
  const Json data = {{"bundle", WriteProof(proof)}, {"bodies", std::move(bodies)}, {"contents", std::move(named)}};
  std::string text;
  for (const char c : DumpJson(data)) c == '<' ? text += "\\u003c" : text += c;

  std::string page(ShareTemplate());
  const std::string style(Between(page, "<style>", "</style>")), script(Between(page, "<script>", "</script>"));
  Fill(page, "{{policy}}",
       "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + PolicyHash(style) + "; script-src " +
           PolicyHash(script));
  Fill(page, "{{data}}", text);
  return page;
}

}  // namespace reprise
