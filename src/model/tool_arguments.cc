#include "model/tool_arguments.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace reprise {

std::string SentArguments(const std::string& arguments) {
  const std::size_t begin = arguments.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "{}";
  if (arguments[begin] == '{' && Json::accept(arguments)) return arguments;
  std::string wrapped = R"({"not_valid_json":)";
  AppendJsonString(wrapped, arguments);
  return wrapped + '}';
}

}  // namespace reprise
