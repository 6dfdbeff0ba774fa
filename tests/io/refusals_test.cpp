// What the system refuses, by real means, each in a child process that gives something up: io_uring by a seccomp
// filter, registered buffers by RLIMIT_MEMLOCK, huge pages by prctl.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/memory.h"
#include "io/read_pool.h"
#include "tests/io/scratch_file.h"

namespace leanstream::io {
namespace {

constexpr size_t kFileBytes = 1 << 20;

// Exits with 0 when a pool gives the file's bytes and `right(facts)` holds; prints the facts.
template <typename Right>
[[noreturn]] void exit_after_reading(const std::string& path, PoolParams::Kind kind, Right right) {
  const auto die = [](const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    _exit(1);
  };
  int log_lines = 0;
  PoolParams params;
  params.kind = kind;
  params.log = {[](std::string_view, void* user) { ++*static_cast<int*>(user); }, &log_lines};
  const Result<StorageFile> file = StorageFile::open(path);
  Result<MappedMemory> memory = MappedMemory::allocate(size_t{4} << 20);
  if (!file.ok() || !memory.ok()) die("no file or no memory");
  ::unlink(path.c_str());  // this process ends without destructors
  {
    ArrivalFlag flag;  // outlives the pool
    Result<std::unique_ptr<ReadPool>> pool =
        ReadPool::create({&*file, 1}, {memory->data(), memory->size_bytes()}, params);
    if (!pool.ok()) die(pool.status().message());
    Read read;
    read.size = kFileBytes;
    read.buffer = memory->data();
    read.flag = &flag;
    read.fill = 1;
    (*pool)->submit({&read, 1});
    if (Status status = (*pool)->wait(flag, 1, nullptr, nullptr); !status.ok()) die(status.message());
    const PoolFacts facts = (*pool)->facts();
    std::string text = facts.engine;
    for (const std::string& refusal : facts.refusals) text += "\n" + refusal;
    if (static_cast<size_t>(log_lines) != facts.refusals.size()) die("not one log line per refusal: " + text);
    if (!right(facts)) die("wrong facts: " + text);
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  const ssize_t same = std::memcmp(memory->data(), ScratchFile(kFileBytes).bytes().data(), kFileBytes);
  _exit(same == 0 ? 0 : 1);
}

// From here on system call `number` gives EPERM.
void forbid(uint32_t number) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    std::fprintf(stderr, "cannot install a seccomp filter: %s\n", std::strerror(errno));
    _exit(2);
  }
}

// From here on no memory beyond 64 KiB may be locked, as an ordinary user's default was for long.
void forbid_locked_memory() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  syscall(SYS_capget, &header, data);
  for (__user_cap_data_struct& word : data) word.inheritable = 0;
  data[0].effective &= ~(1u << CAP_IPC_LOCK);
  data[0].permitted &= ~(1u << CAP_IPC_LOCK);
  const rlimit limit{64 << 10, 64 << 10};
  if (syscall(SYS_capset, &header, data) != 0 || ::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
    std::fprintf(stderr, "cannot give up locked memory: %s\n", std::strerror(errno));
    _exit(2);
  }
}

bool rings_work() {
  const ScratchFile scratch(kFileBytes);
  const Result<StorageFile> file = StorageFile::open(scratch.path());
  PoolParams params;
  params.kind = PoolParams::Kind::kRing;
  return ReadPool::create({&*file, 1}, {}, params).ok();
}

class Refusals : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  const ScratchFile scratch_{kFileBytes};
};
using testing::ExitedWithCode;

TEST_F(Refusals, io_uring_forbidden_at_setup_leaves_threads) {
  EXPECT_EXIT(
      {
        forbid(SYS_io_uring_setup);
        exit_after_reading(scratch_.path(), PoolParams::Kind::kAuto,
                           [](const PoolFacts& facts) { return facts.engine == "pread"; });
      },
      ExitedWithCode(0), "io_uring is refused: Operation not permitted; threads read with pread instead");
}

TEST_F(Refusals, io_uring_forbidden_at_the_first_read_leaves_threads) {
  if (!rings_work()) GTEST_SKIP() << "no io_uring here";
  EXPECT_EXIT(
      {
        forbid(SYS_io_uring_enter);
        exit_after_reading(scratch_.path(), PoolParams::Kind::kAuto,
                           [](const PoolFacts& facts) { return facts.engine == "pread"; });
      },
      ExitedWithCode(0), "io_uring is refused a trial read: Operation not permitted");
}

TEST_F(Refusals, io_uring_forbidden_is_an_error_where_a_ring_was_asked_for) {
  EXPECT_EXIT(
      {
        forbid(SYS_io_uring_setup);
        exit_after_reading(scratch_.path(), PoolParams::Kind::kRing, [](const PoolFacts&) { return true; });
      },
      ExitedWithCode(1), "io_uring is refused: Operation not permitted");
}

// A ring is switched on by a registration.
TEST_F(Refusals, io_uring_forbidden_at_registration_leaves_threads) {
  EXPECT_EXIT(
      {
        forbid(SYS_io_uring_register);
        exit_after_reading(scratch_.path(), PoolParams::Kind::kAuto,
                           [](const PoolFacts& facts) { return facts.engine == "pread"; });
      },
      ExitedWithCode(0), "io_uring is refused: Operation not permitted");
}

TEST_F(Refusals, too_little_locked_memory_leaves_unregistered_buffers) {
  if (!rings_work()) GTEST_SKIP() << "no io_uring here";
  EXPECT_EXIT(
      {
        forbid_locked_memory();
        exit_after_reading(scratch_.path(), PoolParams::Kind::kAuto, [](const PoolFacts& facts) {
          return facts.engine == "io_uring" && !facts.registered_buffers && facts.registered_files;
        });
      },
      ExitedWithCode(0), "refused registered buffers .*Cannot allocate memory");
}

TEST_F(Refusals, no_huge_pages_is_a_fact) {
  EXPECT_EXIT(
      {
        ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
        exit_after_reading(scratch_.path(), PoolParams::Kind::kAuto,
                           [](const PoolFacts& facts) { return !facts.huge_pages; });
      },
      ExitedWithCode(0), "the arena has few huge pages");
}

}  // namespace
}  // namespace leanstream::io
