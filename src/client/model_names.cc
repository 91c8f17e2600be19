#include "client/model_names.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"

namespace reprise {

Result<std::string> FindModel(const std::string& text, const Json& models, const std::string& hint) {
  constexpr std::size_t kMostNamed = 5;
  const std::string provider = text.substr(0, text.find('/') + 1), wanted = LowerCase(text);
  std::vector<std::string> names, similar;
  std::set<std::string> providers;
  for (const Json& model : MemberOf(models, "models")) {
    const std::string name = TextMember(model, "name");
    if (name == text || (!provider.empty() && name.starts_with(provider))) return text;
    if (LowerCase(name).find(wanted) != std::string::npos) similar.push_back(name);
    providers.insert(name.substr(0, name.find('/')));
    names.push_back(name);
  }
  if (similar.size() == 1) return similar.front();
  std::string list;
  const auto add = [&](const std::string& name) { list += (list.empty() ? "" : ", ") + VisibleLine(name); };
  if (!similar.empty()) {
    const std::size_t count = similar.size();
    similar.resize(std::min(count, kMostNamed));
    std::ranges::for_each(similar, add);
    return Fail(ErrorCode::kConflict, "\"" + text + "\" means any of " + Counted(count, "model") + ": " + list +
                                          (count > kMostNamed ? ", ..." : "") + " (" + hint + ")");
  }
  std::ranges::for_each(providers, add);
  return Fail(ErrorCode::kNotFound, "no model is called " + text +
                                        (provider.empty() ? DidYouMean(text, names) : "; the providers are: " + list) +
                                        " (" + hint + ")");
}

}  // namespace reprise
