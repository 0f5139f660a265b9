#include "common/base/build_info.h"

#ifndef KVD_COMMIT
#define KVD_COMMIT unknown
#endif

#define KVD_TEXT_(token) #token
#define KVD_TEXT(token) KVD_TEXT_(token)

namespace kvd {

std::string_view Version() { return "0.1.0"; }

std::string_view Commit() { return KVD_TEXT(KVD_COMMIT); }

}  // namespace kvd
