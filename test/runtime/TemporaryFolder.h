// A folder that is removed when the object dies.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

namespace dspark::test {

class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dspark-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::string file(const std::string &name) const { return (path / name).string(); }
  std::filesystem::path path;
};

} // namespace dspark::test
