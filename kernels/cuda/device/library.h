// Library: a shared library that is looked for when it is needed, not when the program starts.
#pragma once

#include <dlfcn.h>

namespace ring::cuda {

class Library {
 public:
  explicit Library(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }

  bool is_there() const { return handle_ != nullptr; }
  /// Null when the library or the function is not there.
  template <class Function>
  Function* function(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};

}  // namespace ring::cuda
