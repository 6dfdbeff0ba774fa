#include "io/storage_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/io/scratch_file.h"

namespace leanstream::io {
namespace {

TEST(StorageFile, knows_size_and_alignment) {
  const ScratchFile scratch(10000);
  const Result<StorageFile> direct = StorageFile::open(scratch.path());
  ASSERT_TRUE(direct.ok()) << direct.status().message();
  EXPECT_EQ(direct->size_bytes(), 10000u);
  EXPECT_EQ(direct->alignment(), direct->direct() ? 4096u : 1u);
  EXPECT_EQ(direct->direct(), direct->buffered_because().empty());
  const Result<StorageFile> buffered = StorageFile::open(scratch.path(), false);
  ASSERT_TRUE(buffered.ok());
  EXPECT_FALSE(buffered->direct());
  EXPECT_EQ(buffered->alignment(), 1u);
  EXPECT_FALSE(buffered->buffered_because().empty());
}

TEST(StorageFile, refuses_what_is_not_there_or_no_file) {
  EXPECT_EQ(StorageFile::open("./no-such-file").status().code(), Code::kNotFound);
  EXPECT_EQ(StorageFile::open(".").status().code(), Code::kInvalidArgument);
}

TEST(StorageFile, tells_a_change_under_its_feet) {
  const auto message = [](void (*change)(ScratchFile&)) {
    ScratchFile scratch(10000);
    const Result<StorageFile> file = StorageFile::open(scratch.path());
    EXPECT_TRUE(file->check_unchanged().ok());
    change(scratch);
    const Status status = file->check_unchanged();
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_NE(status.message().find(scratch.path()), std::string::npos);
    return status.message();
  };
  EXPECT_NE(message([](ScratchFile& f) { ASSERT_EQ(::truncate(f.path().c_str(), 5000), 0); }).find("now has 5000"),
            std::string::npos);
  EXPECT_NE(message([](ScratchFile& f) {
              const timespec times[2] = {{1, 0}, {1, 0}};  // what a writer leaves, without waiting for the clock
              ASSERT_EQ(::utimensat(AT_FDCWD, f.path().c_str(), times, 0), 0);
            }).find("written to"),
            std::string::npos);
  EXPECT_NE(message([](ScratchFile& f) { f.replace(); }).find("another file"), std::string::npos);
  EXPECT_NE(message([](ScratchFile& f) { ::unlink(f.path().c_str()); }).find("name is gone"), std::string::npos);
}

}  // namespace
}  // namespace leanstream::io
