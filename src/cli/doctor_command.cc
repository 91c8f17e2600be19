#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "app/checks.h"
#include "app/local_models.h"
#include "app/settings.h"
#include "app/trust.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "cli/commands.h"
#include "net/curl_transport.h"
#include "terminal/console.h"

namespace reprise {
namespace {

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warn";
    case Verdict::kFailure:
      return "fail";
  }
  return "fail";
}

void PrintFindings(const std::vector<Finding>& findings, bool ok, bool json) {
  if (json) {
    Json list = Json::array();
    for (const Finding& finding : findings) {
      list.push_back({{"check", finding.check}, {"verdict", Name(finding.verdict)}, {"message", finding.words}});
    }
    PrintDocument({{"ok", ok}, {"checks", std::move(list)}});
    return;
  }
  for (const Finding& finding : findings) {
    std::string line(Name(finding.verdict));
    line.resize(6, ' ');
    Print(line + finding.check + ": " + VisibleLine(finding.words) + "\n");
  }
}

}  // namespace

Exited RunDoctor(const CommandLine& line, const Environment& environment) {
  std::vector<Finding> findings;
  if (const auto options = LoadOptions(line.flags, environment)) {
    std::string source = options->config_file;
    if (!options->folder_file.empty()) source += (source.empty() ? "" : ", ") + options->folder_file;
    if (source.empty()) source = "no file; defaults and environment";
    findings = CheckHealth(*options);
    for (Finding& finding : CheckProviders(*options)) findings.push_back(std::move(finding));
    for (const LocalModelServer& server : FindLocalModels(*options, environment)) {
      findings.push_back({"models on this machine", Verdict::kOk, OfferOf(server, *options, environment)});
    }
    for (Finding& finding : CheckServices(*options)) findings.push_back(std::move(finding));
    // Does not run programs that the server would not run.
    auto programs = FilesToTrust(*options).and_then(
        [&](const FileDigests& files) { return RequireTrust(*options, files, /*ask=*/false); });
    if (programs) {
      for (Finding& finding : CheckMcpServers(*options)) findings.push_back(std::move(finding));
    } else {
      findings.push_back({"programs", Verdict::kFailure, programs.error().message});
    }
    findings.insert(findings.begin(), {"configuration", Verdict::kOk, source});
    for (const std::string& unknown : UnknownVariables(environ)) {
      findings.push_back({"environment", Verdict::kWarning, unknown});
    }
  } else {
    findings.push_back({"configuration", Verdict::kFailure, options.error().message});
  }
  bool ok = true;
  for (const Finding& finding : findings) ok = ok && finding.verdict != Verdict::kFailure;
  PrintFindings(findings, ok, line.json);
  return ok ? kExitOk : kExitFailure;
}

}  // namespace reprise
