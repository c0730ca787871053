#include "core/formats/file_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/formats/gzip.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string stream_content(const std::string& path) {
  const auto input = open_input(path);
  return {std::istreambuf_iterator<char>(*input), {}};
}

RC_GTEST_PROP(Gzip, GivesBackEveryByte, (const std::string& bytes)) {
  RC_ASSERT(gunzip(gzip(bytes), "x", int64_t{1} << 30) == bytes);
  RC_ASSERT(gzip(bytes) == gzip(bytes));
}

TEST(Gzip, ReadsSeveralMembersAsOneFile) {
  EXPECT_EQ(gunzip(gzip("one ") + gzip("two"), "x", 100), "one two");
}

TEST(Gzip, RefusesEveryTruncation) {
  const std::string packed = gzip("a text that is long enough to be packed, packed, packed");
  for (size_t length = 2; length < packed.size(); ++length) {
    EXPECT_THAT(error_of([&] { gunzip(packed.substr(0, length), "f.gz", 1000); }),
                HasSubstr("f.gz: the gzip data is cut short"));
  }
}

TEST(Gzip, RefusesDamageAndBombs) {
  std::string packed = gzip("some text");
  packed[packed.size() - 6] ^= 1;  // The checksum.
  EXPECT_THAT(error_of([&] { gunzip(packed, "f.gz", 1000); }), HasSubstr("damaged"));
  const std::string bomb = gzip(std::string(10'000'000, '\0'));
  EXPECT_LT(bomb.size(), 20'000U);
  EXPECT_THAT(error_of([&] { gunzip(bomb, "f.gz", 1'000'000); }),
              HasSubstr("f.gz: unpacks to more than 1000000 bytes"));
}

TEST(FileIo, WritesAndReadsBack) {
  const TemporaryFolder folder;
  for (const size_t size : {0UL, 1UL, 1UL << 18, (1UL << 18) + 1, 600'000UL}) {
    std::string content(size, '\0');
    for (size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * i >> 7);
    for (const char* name : {"plain.txt", "packed.txt.gz"}) {
      write_file(folder / name, content);
      EXPECT_TRUE(read_file(folder / name) == content) << name << " " << size;
      EXPECT_TRUE(stream_content(folder / name) == content) << name << " " << size;
    }
    EXPECT_TRUE(is_gzip(get(folder / "packed.txt.gz")));
    EXPECT_TRUE(get(folder / "plain.txt") == content);
  }
}

TEST(FileIo, NamesWhatCannotBeRead) {
  const TemporaryFolder folder;
  const std::string missing = folder / "missing";
  EXPECT_THAT(error_of([&] { read_file(missing); }),
              AllOf(HasSubstr(missing), HasSubstr("No such file")));
  EXPECT_THAT(error_of([&] { open_input(missing); }),
              AllOf(HasSubstr(missing), HasSubstr("No such file")));
  EXPECT_THAT(error_of([&] { read_file(folder.path()); }), HasSubstr("it is a directory"));
  EXPECT_THAT(error_of([&] { open_input(folder.path()); }), HasSubstr("it is a directory"));
  put(folder / "large", std::string(1001, 'x'));
  EXPECT_EQ(read_file(folder / "large", 1001).size(), 1001U);
  EXPECT_THAT(error_of([&] { read_file(folder / "large", 1000); }),
              HasSubstr("larger than 1000 bytes"));
}

TEST(FileIo, StreamOfCutGzipFailsInsteadOfEnding) {
  const TemporaryFolder folder;
  const std::string packed = gzip(std::string(100'000, 'a') + "end");
  put(folder / "cut.gz", packed.substr(0, packed.size() - 9));
  EXPECT_THAT(error_of([&] { stream_content(folder / "cut.gz"); }), HasSubstr("cut short"));
  EXPECT_THAT(error_of([&] { read_file(folder / "cut.gz"); }), HasSubstr("cut short"));
}

TEST(FileIo, KeepsModeAndFollowsLinks) {
  const TemporaryFolder folder;
  put(folder / "real", "old");
  chmod((folder / "real").c_str(), 0640);
  std::filesystem::create_symlink("real", folder / "link");
  write_file(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(get(folder / "real"), "new");
  struct stat status {};
  ASSERT_EQ(stat((folder / "real").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

/// Files of this process may not grow beyond a size while this lives: a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    old_handler_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &old_);
    signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int) = nullptr;
};

TEST(FileIo, FullDiskLosesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder / "kept.json";
  put(path, "precious");
  std::string message;
  {
    const FullDisk full(1000);
    message = error_of([&] { write_file(path, std::string(5000, 'x')); }, ErrorKind::kRunFailed);
  }
  EXPECT_THAT(message, AllOf(HasSubstr("cannot write " + path), HasSubstr("Free some space")));
  EXPECT_EQ(get(path), "precious");
  const auto count = std::distance(std::filesystem::directory_iterator(folder.path()), {});
  EXPECT_EQ(count, 1) << "the temporary file is gone";
}

TEST(FileIo, DevicesAreWrittenDirectly) {
  write_file("/dev/null", "anything");
  EXPECT_THAT(error_of([] { write_file("/dev/full", "x"); }, ErrorKind::kRunFailed),
              AllOf(HasSubstr("cannot write /dev/full"), HasSubstr("No space left")));
}

TEST(FileIo, NamesWhatCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { write_file(folder.path(), "x"); }, ErrorKind::kRunFailed),
              HasSubstr("Is a directory"));
  EXPECT_THAT(error_of([&] { write_file(folder / "no/such/file", "x"); }, ErrorKind::kRunFailed),
              HasSubstr("no/such/file: No such file or directory"));
}

}  // namespace
}  // namespace ring
