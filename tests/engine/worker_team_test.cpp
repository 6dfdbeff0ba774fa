#include "engine/worker_team.h"

#include <dirent.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "allocation_count.h"

namespace leanstream::engine {
namespace {

std::unique_ptr<WorkerTeam> make_team(uint32_t threads) {
  Result<std::unique_ptr<WorkerTeam>> team = WorkerTeam::create(threads);
  EXPECT_TRUE(team.ok()) << team.status().message();
  return std::move(*team);
}

// Team sizes below, at and above the number of CPUs of a small machine.
class WorkerTeamTest : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, WorkerTeamTest, ::testing::Values(1, 2, 3, 4, 8));

TEST(WorkerTeam, refuses_to_have_no_thread) {
  EXPECT_EQ(WorkerTeam::create(0).status().code(), Code::kInvalidArgument);
}

TEST_P(WorkerTeamTest, runs_the_body_once_on_every_worker_with_the_caller_as_worker_0) {
  const auto team = make_team(GetParam());
  EXPECT_EQ(team->size(), GetParam());
  for (int round = 0; round < 500; ++round) {
    std::vector<int> calls(GetParam(), 0);
    std::thread::id first;
    const bool complete = team->run([&](Worker& worker) {
      EXPECT_EQ(worker.count(), GetParam());
      ++calls[worker.index()];
      if (worker.index() == 0) first = std::this_thread::get_id();
    });
    ASSERT_TRUE(complete);
    ASSERT_EQ(calls, std::vector<int>(GetParam(), 1));
    ASSERT_EQ(first, std::this_thread::get_id());
  }
}

TEST_P(WorkerTeamTest, lets_nobody_through_a_barrier_before_all_have_arrived) {
  constexpr int kRounds = 2000;
  const auto team = make_team(GetParam());
  std::vector<int> round_of(GetParam(), 0);  // plain memory: the barriers must order it (ThreadSanitizer looks)
  std::atomic<int> early{0};
  team->run([&](Worker& worker) {
    for (int round = 1; round <= kRounds; ++round) {
      round_of[worker.index()] = round;
      worker.barrier();
      for (const int other : round_of) early += other != round;
      worker.barrier();
    }
  });
  EXPECT_EQ(early, 0);
}

TEST_P(WorkerTeamTest, hands_out_every_element_exactly_once) {
  const auto team = make_team(GetParam());
  for (const uint32_t total : {0u, 1u, 2u, 63u, 64u, 65u, 1000u}) {
    for (const uint32_t grain : {1u, 3u, 64u, 5000u}) {
      std::vector<int> seen(total, 0);
      team->run([&](Worker& worker) {
        worker.for_each_chunk(total, grain, [&](uint32_t begin, uint32_t end) {
          EXPECT_LT(begin, end);
          EXPECT_LE(end - begin, grain);
          for (uint32_t i = begin; i < end; ++i) ++seen[i];
        });
      });
      ASSERT_EQ(seen, std::vector<int>(total, 1)) << total << " in chunks of " << grain;
    }
  }
}

TEST_P(WorkerTeamTest, hands_out_totals_at_the_end_of_the_range) {
  const auto team = make_team(GetParam());
  std::atomic<uint64_t> elements{0};
  team->run([&](Worker& worker) {
    worker.for_each_chunk(UINT32_MAX, 0xc0000000u, [&](uint32_t begin, uint32_t end) { elements += end - begin; });
  });
  EXPECT_EQ(elements, UINT32_MAX);
}

TEST_P(WorkerTeamTest, shows_each_phase_what_the_phase_before_wrote) {
  constexpr uint32_t kCount = 257;
  const auto team = make_team(GetParam());
  std::vector<uint64_t> value(kCount, 1), next(kCount);
  team->run([&](Worker& worker) {
    for (int phase = 0; phase < 300; ++phase) {
      const auto& from = phase % 2 == 0 ? value : next;
      auto& to = phase % 2 == 0 ? next : value;
      worker.for_each_chunk(kCount, 1 + phase % 7, [&](uint32_t begin, uint32_t end) {
        for (uint32_t i = begin; i < end; ++i) to[i] = from[i] + from[kCount - 1 - i];
      });
    }
  });
  // 300 doublings of equal numbers, modulo 2^64.
  EXPECT_EQ(value, std::vector<uint64_t>(kCount, 0));
  EXPECT_EQ(next, std::vector<uint64_t>(kCount, 0));
}

TEST_P(WorkerTeamTest, takes_concurrent_runs_one_at_a_time) {
  constexpr int kCallers = 3, kRuns = 200;
  const auto team = make_team(GetParam());
  uint64_t under_way = 0, runs = 0;  // plain memory: runs exclude and order each other
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller)
    callers.emplace_back([&] {
      for (int i = 0; i < kRuns; ++i)
        team->run([&](Worker& worker) {
          if (worker.index() == 0) {
            EXPECT_EQ(++under_way, 1u);
          }
          worker.barrier();
          worker.for_each_chunk(16, 1, [](uint32_t, uint32_t) {});
          if (worker.index() == 0) --under_way, ++runs;
        });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(runs, uint64_t{kCallers * kRuns});
}

TEST_P(WorkerTeamTest, stops_all_workers_at_the_same_barrier) {
  const auto team = make_team(GetParam());
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> calls{0};
    std::vector<int> phases(GetParam(), 0);
    const auto stop_after_two_polls = [](void* user) {
      return static_cast<std::atomic<int>*>(user)->fetch_add(1) == 1;
    };
    const bool complete = team->run(
        [&](Worker& worker) {
          // Workers that disagreed about stopping would meet at different barriers and hang.
          while (!worker.stopping()) {
            worker.for_each_chunk(64, 1, [](uint32_t, uint32_t) {});
            ++phases[worker.index()];
          }
        },
        stop_after_two_polls, &calls);
    ASSERT_FALSE(complete);
    ASSERT_EQ(calls, 2);
    ASSERT_EQ(phases, std::vector<int>(GetParam(), phases[0]));
  }
  EXPECT_TRUE(team->run([](Worker& worker) {
    worker.for_each_chunk(4, 1, [](uint32_t, uint32_t) {});
    EXPECT_FALSE(worker.stopping());
  })) << "a stop must not outlive its run";
}

TEST_P(WorkerTeamTest, hands_out_no_chunk_in_the_phases_after_a_stop) {
  const auto team = make_team(GetParam());
  std::atomic<uint32_t> late_chunks{0};
  const bool complete = team->run(
      [&](Worker& worker) {
        worker.for_each_chunk(1000, 1, [](uint32_t, uint32_t) {});  // worker 0 polls here
        worker.for_each_chunk(1000, 1, [&](uint32_t, uint32_t) { ++late_chunks; });
      },
      [](void*) { return true; });
  EXPECT_FALSE(complete);
  EXPECT_EQ(late_chunks, 0u);
}

TEST(WorkerTeam, polls_stop_at_most_every_5_ms) {
  const auto team = make_team(2);
  std::atomic<int> polls{0};
  const auto begin = std::chrono::steady_clock::now();
  team->run([](Worker& worker) { worker.for_each_chunk(20000, 1, [](uint32_t, uint32_t) {}); },
            [](void* user) {
              ++*static_cast<std::atomic<int>*>(user);
              return false;
            },
            &polls);
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(polls, 1);
  EXPECT_LE(polls, 1 + elapsed / std::chrono::milliseconds(5));
}

TEST_P(WorkerTeamTest, allocates_nothing_in_a_run) {
  const auto team = make_team(GetParam());
  std::atomic<int> stop_calls{0};
  const uint64_t before = testing::allocation_count();
  for (int i = 0; i < 50; ++i)
    team->run(
        [&](Worker& worker) {
          worker.barrier();
          worker.for_each_chunk(100, 3, [](uint32_t, uint32_t) {});
        },
        [](void* user) { return static_cast<std::atomic<int>*>(user)->fetch_add(1) < 0; }, &stop_calls);
  EXPECT_EQ(testing::allocation_count(), before);
}

TEST(WorkerTeam, gives_a_body_its_stack_on_every_thread_of_its_own) {
  pthread_attr_t before, small;
  pthread_getattr_default_np(&before);
  small = before;
  pthread_attr_setstacksize(&small, size_t{64} << 10);  // as after `ulimit -s 64`
  pthread_setattr_default_np(&small);
  const auto team = make_team(3);
  pthread_setattr_default_np(&before);
  std::vector<size_t> free_bytes(3, 0);
  team->run([&](Worker& worker) { free_bytes[worker.index()] = free_stack_bytes(); });
  for (const size_t free : free_bytes) EXPECT_GE(free, WorkerTeam::kBodyStackBytes);
  EXPECT_TRUE(WorkerTeam::check_calling_thread().ok());
}

// The states (R running, S sleeping) of the threads of this process whose names begin with "leanstream-".
std::string worker_states() {
  std::string states;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) {
    std::ifstream stat(std::string("/proc/self/task/") + entry->d_name + "/stat");
    const std::string line{std::istreambuf_iterator<char>(stat), {}};
    const size_t name_end = line.rfind(')');
    if (name_end != std::string::npos && line.find("(leanstream-") != std::string::npos) states += line[name_end + 2];
  }
  closedir(tasks);
  return states;
}

TEST(WorkerTeam, sleeps_between_runs) {
  const auto team = make_team(3);
  team->run([](Worker&) {});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (worker_states() != "SS" && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(worker_states(), "SS");
  bool ran[3] = {};
  team->run([&](Worker& worker) { ran[worker.index()] = true; });
  EXPECT_TRUE(ran[0] && ran[1] && ran[2]) << "a sleeping worker was not woken";
}

}  // namespace
}  // namespace leanstream::engine
