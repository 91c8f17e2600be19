#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace reprise::test {

struct Finished {
  int status = -1;  // the exit status; 128 + number for a signal
  std::string out, err;
};

// The real binary, run with exactly these environment variables.
using Variables = std::map<std::string, std::string>;
Finished RunReprise(const std::vector<std::string>& arguments, const Variables& variables = {},
                    const std::string& directory = "/");

// A server that runs in the background; ended when the object goes.
class ServerProcess {
 public:
  // Returns when the server has said that it listens; throws, with what it wrote, if it ends instead.
  ServerProcess(std::vector<std::string> arguments, const Variables& variables, const std::string& directory);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const std::string& first_line() const { return first_line_; }
  int port() const { return port_; }
  pid_t pid() const { return pid_; }
  void Signal(int number) const;
  Finished Wait();  // until it has ended

  // One request on a connection of its own; the whole response.
  std::string Http(const std::string& method, const std::string& path, const std::string& body = {}) const;
  // Sends a request and returns the socket once `text` has been read from it.
  int OpenStream(const std::string& path, const std::string& body, const std::string& text) const;
  static std::string ReadToEnd(int socket);

 private:
  int Connect() const;

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  std::string first_line_;
  int port_ = 0;
};

}  // namespace reprise::test
