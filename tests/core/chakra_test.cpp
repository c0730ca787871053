#include "core/formats/chakra.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>

#include "core/error.h"
#include "core/program_text.h"
#include "tests/core/random_run.h"

namespace ring {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "no error";
}

// The bytes as the schema and the encoding page give them, put together by hand.
TEST(Chakra, WritesTheBytesOfTheSchema) {
  const RingProgram program = parse_program("ranks 1\nlanes 1\nr0 L0 compute time=5us\n");
  const std::string metadata =
      "\x0a\x05"
      "0.0.4"s;
  const std::string node = "\x08\x00"s +  // id 0
                           "\x12\x0e"
                           "compute step 0" +  // name
                           "\x18\x04" +        // COMP_NODE
                           "\x52\x0e\x0a\x09"
                           "is_cpu_op"
                           "\xd8\x01\x00"s +  // bool 0
                           "\x52\x08\x0a\x04"
                           "lane"
                           "\x38\x00"s +  // int32 0
                           "\x38\x05" +   // 5 us
                           "\x52\x0b\x0a\x07"
                           "num_ops"
                           "\x48\x00"s +  // int64 0
                           "\x52\x12\x0a\x0b"
                           "duration_ps"
                           "\x48\xc0\x96\xb1\x02";
  const std::vector<std::string> traces = chakra_traces(program, Machine());
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0], "\x07"s + metadata + static_cast<char>(node.size()) + node);
}

/// All work becomes computation of a given time, which is all that a trace can say of it.
RingProgram plain_program(uint64_t seed) {
  RingProgram program = test::random_run(seed).program;
  int64_t next = 0;
  for (RankProgram& rank : program.rank_programs) {
    for (Op& op : rank.ops) {
      if (op.kind == OpKind::kSend || op.kind == OpKind::kReceive) continue;
      op.kind = OpKind::kCompute;
      op.fixed_ps = 1'234'567 * ++next;
    }
  }
  return program;
}

/// Deps of other lanes, each once: lane order says the rest.
std::vector<LanePoint> deps_of(const RankProgram& rank, const Op& op) {
  std::vector<LanePoint> deps;
  for (const LanePoint& dep : rank.deps_of(op)) {
    if (dep.lane != op.lane) deps.push_back(dep);
  }
  const auto key = [](const LanePoint& p) { return std::pair(p.lane, p.position); };
  std::sort(deps.begin(), deps.end(), [&](auto& a, auto& b) { return key(a) < key(b); });
  deps.erase(std::unique(deps.begin(), deps.end()), deps.end());
  return deps;
}

std::vector<std::string> names_for(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back("t." + std::to_string(i) + ".et");
  return names;
}

RC_GTEST_PROP(Chakra, ReadsBackWhatItWrote, (uint64_t seed)) {
  const RingProgram program = plain_program(seed);
  const auto traces = chakra_traces(program, Machine());
  const RingProgram back = parse_chakra(traces, names_for(traces.size()));
  RC_ASSERT(back.ranks() == program.ranks());
  for (int r = 0; r < program.ranks(); ++r) {
    const RankProgram& a = program.rank_programs[static_cast<size_t>(r)];
    const RankProgram& b = back.rank_programs[static_cast<size_t>(r)];
    RC_ASSERT(a.ops.size() == b.ops.size());
    for (size_t i = 0; i < a.ops.size(); ++i) {
      RC_ASSERT(a.ops[i].kind == b.ops[i].kind);
      RC_ASSERT(a.ops[i].lane == b.ops[i].lane);
      RC_ASSERT(a.ops[i].lane_position == b.ops[i].lane_position);
      RC_ASSERT(a.ops[i].peer == b.ops[i].peer);
      RC_ASSERT(a.ops[i].bytes == b.ops[i].bytes);
      RC_ASSERT(a.ops[i].fixed_ps == b.ops[i].fixed_ps);
      RC_ASSERT(a.ops[i].protocol == b.ops[i].protocol);
      RC_ASSERT(deps_of(a, a.ops[i]) == deps_of(b, b.ops[i]));
    }
  }
}

RC_GTEST_PROP(Chakra, CutTracesAreRefusedOrShorter, (uint64_t seed)) {
  const RingProgram program = plain_program(seed);
  const std::string whole = chakra_traces(program, Machine())[0];
  const size_t cut = static_cast<size_t>(seed % (whole.size() + 1));
  std::vector<std::string> traces = chakra_traces(program, Machine());
  traces[0] = whole.substr(0, cut);
  try {
    const RingProgram back = parse_chakra(traces, names_for(traces.size()));
    RC_ASSERT(back.rank_programs[0].ops.size() <= program.rank_programs[0].ops.size());
  } catch (const Error& error) {
    RC_ASSERT(error.kind() == ErrorKind::kUsage);
  }
  for (char& byte : traces[0]) byte = static_cast<char>(byte ^ static_cast<char>(seed >> 3));
  try {
    parse_chakra(traces, names_for(traces.size()));  // rubbish must not crash
  } catch (const Error& error) {
    RC_ASSERT(error.kind() == ErrorKind::kUsage);
  }
}

/// A trace of someone else, made without the writer under test.
class Trace {
 public:
  Trace() {
    add("\x0a\x05"
        "0.0.4"s);
  }

  /// Dependencies unpacked, as older writers do.
  Trace& node(int id, int type, const std::vector<int>& deps, int micros,
              const std::vector<std::pair<std::string, int>>& attributes = {}) {
    std::string body = field(1, id) + "\x12\x01n" + field(3, type);
    for (const int dep : deps) body += field(5, dep);
    body += field(7, micros);
    for (const auto& [name, value] : attributes) {
      std::string attribute = "\x0a" + number(static_cast<int>(name.size())) + name;
      attribute += field(13, value);  // uint64
      body += "\x52" + number(static_cast<int>(attribute.size())) + attribute;
    }
    add(body);
    return *this;
  }

  std::string bytes() const { return bytes_; }

 private:
  static std::string number(int value) {
    std::string bytes;
    for (; value >= 128; value /= 128) bytes += static_cast<char>(value % 128 + 128);
    return bytes + static_cast<char>(value);
  }
  static std::string field(int field, int value) { return number(field * 8) + number(value); }
  void add(const std::string& body) { bytes_ += number(static_cast<int>(body.size())) + body; }

  std::string bytes_;
};

constexpr int kComp = 4, kSend = 5, kReceive = 6;

RingProgram read(const std::vector<std::string>& traces, const ChakraReadOptions& options = {}) {
  return parse_chakra(traces, names_for(traces.size()), options);
}

TEST(Chakra, ForeignGraphsGetLanesThatAddNoDependency) {
  // Two sends at once after a computation, then one that waits for the first.
  const std::string sender = Trace()
                                 .node(10, kComp, {}, 3)
                                 .node(11, kSend, {10}, 0, {{"comm_dst", 1}, {"comm_size", 100}})
                                 .node(12, kSend, {10}, 0, {{"comm_dst", 1}, {"comm_size", 200}})
                                 .node(13, kSend, {11}, 0, {{"comm_dst", 1}, {"comm_size", 300}})
                                 .bytes();
  const std::string receiver =
      Trace()
          .node(5, kReceive, {}, 0, {{"comm_src", 0}, {"comm_size", 100}})
          .node(6, kReceive, {}, 0, {{"comm_src", 0}, {"comm_size", 200}})
          .node(7, kReceive, {5, 6}, 0, {{"comm_src", 0}, {"comm_size", 300}})
          .bytes();
  const RingProgram program = read({sender, receiver});
  const auto& ops = program.rank_programs[0].ops;
  ASSERT_EQ(ops.size(), 4U);
  EXPECT_EQ(ops[0].fixed_ps, 3'000'000);
  EXPECT_EQ(ops[0].lane, kComputeLane);
  EXPECT_NE(ops[1].lane, ops[2].lane);
  EXPECT_EQ(ops[3].lane, ops[1].lane);
  EXPECT_EQ(ops[1].protocol, Protocol::kEager);
  // A tag used again pairs in order: the numbers differ, and agree on both sides.
  const auto& receives = program.rank_programs[1].ops;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(receives[i].message, ops[i + 1].message);
    EXPECT_EQ(receives[i].bytes, ops[i + 1].bytes);
  }
  EXPECT_NE(ops[1].message, ops[2].message);
}

TEST(Chakra, NodesMayComeInAnyOrder) {
  const RingProgram program =
      read({Trace().node(3, kComp, {2}, 7).node(2, kComp, {1}, 6).node(1, kComp, {}, 5).bytes()});
  EXPECT_EQ(program.rank_programs[0].ops[0].fixed_ps, 5'000'000);
  EXPECT_EQ(program.rank_programs[0].ops[2].fixed_ps, 7'000'000);
}

TEST(Chakra, OperationsNeedASpeed) {
  const std::string trace = Trace().node(1, kComp, {}, 0, {{"num_ops", 5000}}).bytes();
  EXPECT_THAT(message_of([&] { read({trace}); }), HasSubstr("no duration"));
  EXPECT_EQ(read({trace}, {.flops_per_s = 1e12}).rank_programs[0].ops[0].fixed_ps, 5000);
}

TEST(Chakra, ErrorsNameTraceAndNode) {
  const auto message = [](const Trace& trace) {
    return message_of([&] { read({trace.bytes()}); });
  };
  EXPECT_THAT(message(Trace().node(1, kComp, {9}, 1)),
              HasSubstr("t.0.et: node 1 ('n') depends on node 9"));
  EXPECT_THAT(message(Trace().node(1, kComp, {2}, 1).node(2, kComp, {1}, 1)), HasSubstr("cycle"));
  EXPECT_THAT(message(Trace().node(1, kComp, {}, 1).node(1, kComp, {}, 1)), HasSubstr("twice"));
  EXPECT_THAT(message(Trace().node(1, 7, {}, 1)), HasSubstr("is of type 7"));
  EXPECT_THAT(message(Trace().node(1, kSend, {}, 0, {{"comm_dst", 3}, {"comm_size", 1}})),
              HasSubstr("rank 3 as its peer"));
  EXPECT_THAT(message(Trace().node(1, kSend, {}, 0, {{"comm_size", 1}})),
              HasSubstr("does not name its peer"));
  EXPECT_THAT(message_of([] { read({""}); }), HasSubstr("empty"));
  EXPECT_THAT(message_of([] { read({"\x7f"}); }), HasSubstr("t.0.et: the data ends early at byte"));
  EXPECT_THAT(message_of([] { read_chakra("/no/such/prefix"); }),
              HasSubstr("/no/such/prefix.0.et"));
}

}  // namespace
}  // namespace ring
