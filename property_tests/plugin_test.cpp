#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <type_traits>

#include "backends/plugin/plugin_host.hpp"
#include "contracts/call_fields.hpp"
#include "contracts/signatures/returned_output.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/stub_backend.hpp"

// test_plugin.cpp misbehaves as ATTEST_TEST_PLUGIN says; each test loads it anew.

namespace attest {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

namespace fs = std::filesystem;

constexpr const char* plugin_file = ATTEST_TEST_PLUGIN_FILE;

class Plugin : public testing::Test {
 protected:
  ~Plugin() override { unsetenv("ATTEST_TEST_PLUGIN"); }

  static std::unique_ptr<ForeignBackend> that(const char* misbehaves,
                                              const char* file = plugin_file) {
    setenv("ATTEST_TEST_PLUGIN", misbehaves, 1);
    return load_plugin(file, ATTEST_BINARY);
  }
  static Judgement judged(const char* misbehaves, std::chrono::milliseconds limit = 20s) {
    JudgeOptions options;
    options.time_limit = limit;
    return judge(verify_case(), *that(misbehaves), options);
  }
  /// What loading it says.
  static std::string refusal(const char* misbehaves, const char* file = plugin_file) {
    try {
      that(misbehaves, file);
    } catch (const BackendError& error) {
      return error.what();
    }
    return "it was loaded";
  }
};

TEST_F(Plugin, IsABackendAndPasses) {
  const auto backend = that("");
  EXPECT_EQ(backend->name(), "mine.unified@cpu");
  EXPECT_EQ(backend->selector(), fs::canonical(plugin_file).string());
  EXPECT_EQ(backend->profile().version, "1.0");
  const Judgement j = judge(verify_case(), *backend);
  EXPECT_EQ(j.verdict, Verdict::pass) << j.reason;
  EXPECT_EQ(j.engine, "cpu");
  EXPECT_GT(j.worst_z, 0) << "its profile's z_limit is not used";
}

TEST_F(Plugin, ReproducesUnderItsFile) {
  EXPECT_THAT(judge(verify_case(), *that("")).repro,
              HasSubstr("--backend " + fs::canonical(plugin_file).string()));
}

TEST_F(Plugin, HasItsBugCaught) {
  JudgeOptions options;
  const auto backend = that("", ATTEST_TEST_PLUGIN_WITH_BUG);
  const Judgement j = judge(verify_case(), *backend, options);
  EXPECT_EQ(j.verdict, Verdict::mismatch);
  EXPECT_THAT(j.diagnosis, StartsWith("causal_one_long"));
}

TEST_F(Plugin, OfAnotherVersionIsRefusedWithBothVersions) {
  EXPECT_EQ(refusal("lies"),
            std::string(plugin_file) +
                ": attest_plugin_abi() is 7, this attest takes plugins of version 1");
}

TEST_F(Plugin, WithoutASymbolIsRefusedByFileAndSymbol) {
  EXPECT_THAT(
      refusal("", ATTEST_TEST_PLUGIN_WITHOUT_RUN),
      AllOf(StartsWith(ATTEST_TEST_PLUGIN_WITHOUT_RUN), HasSubstr("no symbol attest_plugin_run")));
}

TEST_F(Plugin, ThatIsNoLibraryIsRefusedByFile) {
  EXPECT_THAT(
      refusal("", "./no_such_plugin.so"),
      AllOf(StartsWith("./no_such_plugin.so: cannot be loaded"), HasSubstr("No such file")));
  EXPECT_THAT(refusal("", ATTEST_TEST_PLUGIN_SOURCE), HasSubstr("cannot be loaded"));
}

TEST_F(Plugin, ThatDescribesItselfBadlyIsRefusedByMember) {
  EXPECT_THAT(refusal("null"), HasSubstr("attest_plugin_describe() gave NULL"));
  EXPECT_THAT(refusal("no_json"), HasSubstr("is no JSON object"));
  EXPECT_THAT(refusal("unknown_member"),
              AllOf(StartsWith(plugin_file), HasSubstr("/capabilities/windows")));
  const std::string file = plugin_file;
  EXPECT_EQ(refusal("bad_name"),
            file + ": /name: \"mine\" is not a backend name <impl>.<signature>@<engine>");
  EXPECT_EQ(refusal("bad_profile"), file + ": /profile/pdtype: is not a field of a profile");
  EXPECT_EQ(refusal("no_profile"), file + ": /profile/z_limit/x: is not the name of a recipe");
}

TEST_F(Plugin, WhoseConstructorCrashesIsRefusedByFile) {
  EXPECT_THAT(refusal("constructor_crashes"),
              AllOf(StartsWith(plugin_file), HasSubstr("signal 11")));
}

TEST_F(Plugin, ThatCrashesIsTheVerdictOfThatCase) {
  const Judgement j = judged("run_crashes");
  EXPECT_EQ(j.verdict, Verdict::crashed);
  EXPECT_THAT(j.reason, HasSubstr("signal 11"));
  EXPECT_EQ(judged("exits").verdict, Verdict::crashed);
}

TEST_F(Plugin, ThatCrashesWhenAskedIsTheVerdictOfThatCaseToo) {
  const Judgement j = judged("supports_crashes");
  EXPECT_EQ(j.verdict, Verdict::crashed);
  EXPECT_THAT(j.reason, HasSubstr("asked whether it supports the call"));
}

TEST_F(Plugin, ThatHangsIsTheVerdictOfThatCase) {
  const Judgement j = judged("run_hangs", 300ms);
  EXPECT_EQ(j.verdict, Verdict::hung);
  EXPECT_THAT(j.reason, HasSubstr("no reply within 300 ms"));
}

TEST_F(Plugin, ThatThrowsIsAVerdictWithItsWords) {
  const Judgement j = judged("throws");
  EXPECT_EQ(j.verdict, Verdict::crashed);
  EXPECT_THAT(j.reason, AllOf(HasSubstr(plugin_file),
                              HasSubstr("attest_plugin_run() threw: a kernel's own trouble")));
  EXPECT_THAT(judged("throws_an_int").reason, HasSubstr("threw what is no std::exception"));
}

TEST_F(Plugin, ThatRefusesACallDisagreesWithTheRules) {
  const Judgement j = judged("refuses");
  EXPECT_EQ(j.verdict, Verdict::mismatch);
  EXPECT_EQ(j.reason, "kernel raised: head_dim is odd");
}

TEST_F(Plugin, ThatReturnsNoResultOfTheHeaderFails) {
  EXPECT_THAT(judged("unknown_result").reason, HasSubstr("returned 42"));
}

TEST_F(Plugin, ThatAnswersNoResultOfTheHeaderWhenAskedIsTheVerdictOfThatCase) {
  const Judgement j = judged("unknown_answer");
  EXPECT_EQ(j.verdict, Verdict::crashed);
  EXPECT_THAT(j.reason, HasSubstr("attest_plugin_supports() returned 99"));
}

TEST_F(Plugin, ThatDoesNotSupportACallSaysWhy) {
  const Judgement j = judged("no");
  EXPECT_EQ(j.verdict, Verdict::unsupported);
  EXPECT_EQ(j.reason, "not today");
}

TEST_F(Plugin, ThatWritesWhereItMustNotIsCaught) {
  for (const auto& [misbehaves, place] : {std::pair{"writes_past_out", "out: "},
                                          {"writes_to_q", "q: "},
                                          {"writes_before_k", "k: K pool: byte -2"}}) {
    const Judgement j = judged(misbehaves);
    EXPECT_EQ(j.verdict, Verdict::mismatch) << misbehaves;
    EXPECT_THAT(j.reason, AllOf(StartsWith("damage: "), HasSubstr(place))) << misbehaves;
  }
}

/// However its path is spelled.
TEST_F(Plugin, IsOneAndTheSameByEveryPathToIt) {
  const fs::path file = fs::canonical(plugin_file);
  const fs::path link =
      fs::path(testing::TempDir()) / ("attest_plugin_" + std::to_string(getpid()) + ".so");
  fs::create_symlink(file, link);
  const std::string around = (file.parent_path() / "." / file.filename()).string();
  const auto selected = select_backends(around + "," + link.string() + "," + file.string());
  fs::remove(link);
  ASSERT_EQ(selected.size(), 1U);
  EXPECT_EQ(selected[0]->selector(), file.string());
  EXPECT_EQ(canonical_plugin("no/../such.so"), (fs::current_path() / "such.so").string());
  EXPECT_EQ(canonical_plugin("./a,b.so"), "./a,b.so") << "a selector is split at commas";
}

/// Another library whose kernel has the same name: a table of both must tell which is which.
TEST_F(Plugin, GetsANumberWhereItsNameIsTaken) {
  const auto selected =
      select_backends(std::string(plugin_file) + "," + ATTEST_TEST_PLUGIN_WITH_BUG);
  ASSERT_EQ(selected.size(), 2U);
  EXPECT_EQ(selected[0]->name(), "mine.unified@cpu");
  EXPECT_EQ(selected[1]->name(), "mine-2.unified@cpu");
  EXPECT_EQ(judge(verify_case(), *selected[1]).verdict, Verdict::mismatch);
}

TEST_F(Plugin, IsSelectedByItsFileBesideOthers) {
  const auto selected = select_backends(std::string("scalar.unified,") + plugin_file);
  ASSERT_EQ(selected.size(), 2U);
  EXPECT_EQ(selected.back()->name(), "mine.unified@cpu");
  EXPECT_EQ(select_backends(plugin_file).front(), selected.back()) << "it was loaded twice";
  try {
    select_backends("./no_such_plugin.so");
    FAIL() << "it was selected";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), StartsWith("./no_such_plugin.so: cannot be loaded"));
  }
}

/// The parameters of one calling convention as a plugin is given them.
template <class CallType>
std::vector<std::string> every_argument() {
  std::vector<std::string> names;
  const auto note = [&]<class Member>(const CallField<CallType, Member>& field) {
    const std::string key(field.key);
    if constexpr (std::is_same_v<Member, std::array<std::int64_t, 2>>) {
      names.insert(names.end(), {key + ".0", key + ".1"});
    } else if constexpr (!std::is_same_v<Member, std::optional<Launch>> &&
                         !std::is_same_v<Member, std::optional<WorkPlan>>) {
      names.push_back(key);
    }
  };
  std::apply([&](const auto&... fields) { (note(fields), ...); }, call_fields<CallType>);
  if (returned_output(CallType())) names.emplace_back("out");
  return names;
}

/// "| `q`, `out` | ..." of the table under "### unified" in docs/plugins.md.
std::string rows_of(const std::string& page, Signature signature) {
  const std::string heading = "\n### " + std::string(name(signature)) + "\n";
  const std::size_t at = page.find(heading);
  if (at == std::string::npos) return "";
  std::istringstream section(page.substr(at, page.find("\n##", at + heading.size()) - at));
  std::string rows;
  for (std::string line; std::getline(section, line);) {
    if (line.starts_with("| `")) rows += line.substr(0, line.find(" | ")) + ",";
  }
  return rows;
}

template <class CallType>
void expect_rows(const std::string& page) {
  const Signature signature = signature_of(CallType());
  const std::string rows = rows_of(page, signature);
  for (const std::string& argument : every_argument<CallType>()) {
    EXPECT_THAT(rows, HasSubstr("`" + argument + "`")) << name(signature);
  }
}

TEST(PluginPage, HasARowForEveryArgumentThatAPluginSees) {
  std::ifstream file(ATTEST_SOURCE_DIR "/docs/plugins.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  [&]<std::size_t... I>(std::index_sequence<I...> /*alternatives*/) {
    (expect_rows<std::variant_alternative_t<I, Call>>(page), ...);
  }(std::make_index_sequence<std::variant_size_v<Call>>());
}

}  // namespace
}  // namespace attest
