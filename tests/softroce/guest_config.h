// What guest.sh asks of the guest: the file /config in its initial memory disk, a list of key=value
// strings, each ended by a zero byte. Keys that may be repeated keep their order.
//
//   argument=WORD       the command and its arguments
//   environment=K=V     the command's environment
//   directory=PATH      where it runs
//   timeout=SECONDS     how long it may run
//   late=WORD           a command run if it takes longer, with its arguments
//   setup=WORD          a command run before it, with its arguments; the guest fails if it does
//   visible=PATH        an entry of the host's /tmp that is seen in the guest's, which is empty
//   else share=PATH          a folder of the host that is writable; the n-th has the 9p tag
//   "share<n>" modules=PATH        the folder whose lib/modules the guest's modprobe uses
//   terminal=ROWSxCOLUMNS  the command gets the console as its terminal
#pragma once

#include <map>
#include <string>
#include <vector>

namespace kvd::softroce {

class GuestConfig {
 public:
  // Reads the file; a file that cannot be read gives an empty configuration.
  static GuestConfig Read(const std::string& path);

  // All values of a key, in order.
  const std::vector<std::string>& All(const std::string& key) const;

  // The value of a key that stands once; empty if it is not there.
  std::string One(const std::string& key) const;

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

}  // namespace kvd::softroce
