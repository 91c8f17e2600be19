#include "cli/model_catalog.h"

#include <utility>

#include "model/model_directory.h"

namespace reprise {
namespace {

constexpr std::string_view kOpenAiDefault = "gpt-4o-mini";

std::string_view ProviderOf(std::string_view model) { return model.substr(0, model.find('/')); }

// What GET /models names of a provider: what the configuration says about it, and the model that is used unasked.
std::vector<std::string> ModelsOf(const ProviderOptions& provider, const Options& options) {
  std::set<std::string> names;
  const std::string prefix = provider.name + "/";
  for (const auto& [name, facts] : options.models) {
    if (name.starts_with(prefix)) names.insert(name.substr(prefix.size()));
  }
  if (options.model.starts_with(prefix)) names.insert(options.model.substr(prefix.size()));
  if (names.empty() && provider.name == "openai" && !provider.api_key.empty())
    names.insert(std::string(kOpenAiDefault));
  return {names.begin(), names.end()};
}

}  // namespace

Result<std::unique_ptr<ModelCatalog>> ModelCatalog::Create(Transport& transport, const Options& options) {
  std::vector<ProviderConfig> supported;
  std::set<std::string, std::less<>> unsupported;
  for (const ProviderOptions& provider : options.providers) {
    if (provider.type != "openai") {
      unsupported.insert(provider.name);
      continue;
    }
    supported.push_back({.name = provider.name,
                         .type = provider.type,
                         .base_url = provider.base_url,
                         .api_key = provider.api_key,
                         .idle_timeout = options.provider_idle_timeout,
                         .models = ModelsOf(provider, options)});
  }
  const bool usable = !unsupported.contains(ProviderOf(options.model));
  auto directory = ConfiguredModelDirectory::Create(transport, std::move(supported),
                                                    usable ? options.model : std::string("offline"));
  if (!directory) return Fail(directory.error());
  return std::unique_ptr<ModelCatalog>(new ModelCatalog(*std::move(directory), std::move(unsupported), options.model));
}

Result<ModelDirectory::Resolved> ModelCatalog::Resolve(std::string_view name) const {
  const std::string_view wanted = name.empty() ? std::string_view(default_model_) : name;
  if (unsupported_.contains(ProviderOf(wanted))) {
    return Fail(Error{.code = ErrorCode::kInvalidArgument,
                      .reason = "provider_not_supported",
                      .message = "the provider " + std::string(ProviderOf(wanted)) +
                                 " is of a type that is not supported yet (anthropic)"});
  }
  return supported_->Resolve(wanted);
}

}  // namespace reprise
