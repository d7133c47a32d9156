#include "cli/flags.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "contracts/printable.hpp"
#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365);

std::string quoted(const std::string& text) { return "'" + printable(text) + "'"; }

std::uint64_t whole_of(const std::string& flag, const std::string& text, WholeRange range) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && at == end && value >= range.least && value <= range.most) {
    return value;
  }
  throw CLI::ValidationError(flag, quoted(text) + " is not a whole number from " +
                                       std::to_string(range.least) + " to " +
                                       std::to_string(range.most));
}

std::chrono::milliseconds seconds_of(const std::string& flag, const std::string& text,
                                     std::chrono::milliseconds least) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  const double least_seconds = std::chrono::duration<double>(least).count();
  const double most_seconds = std::chrono::duration<double>(longest).count();
  // Compared this way round, NaN is outside.
  if (error == std::errc() && at == end && value >= least_seconds && value <= most_seconds) {
    // Up: a short time must not become 0, which means none.
    return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(value * 1000)));
  }
  throw CLI::ValidationError(flag, quoted(text) + " is not a number of seconds from " +
                                       short_number(least_seconds) + " to " +
                                       std::to_string(longest.count() / 1000));
}

}  // namespace

CLI::Option* add_whole(CLI::App& command, const std::string& flag, WholeRange range,
                       const std::string& says, std::function<void(std::uint64_t)> store) {
  return command
      .add_option_function<std::string>(
          flag,
          [flag, range, store = std::move(store)](const std::string& text) {
            store(whole_of(flag, text, range));
          },
          says)
      ->type_name("N");
}

template <class Integer>
CLI::Option* add_whole(CLI::App& command, const std::string& flag, Integer& target,
                       WholeRange range, const std::string& says) {
  return add_whole(command, flag, range, says,
                   [&target](std::uint64_t value) { target = static_cast<Integer>(value); })
      ->default_str(std::to_string(target));
}
template CLI::Option* add_whole(CLI::App&, const std::string&, int&, WholeRange,
                                const std::string&);
template CLI::Option* add_whole(CLI::App&, const std::string&, std::int64_t&, WholeRange,
                                const std::string&);
template CLI::Option* add_whole(CLI::App&, const std::string&, std::uint64_t&, WholeRange,
                                const std::string&);

CLI::Option* add_seconds(CLI::App& command, const std::string& flag,
                         std::chrono::milliseconds& target, std::chrono::milliseconds least,
                         const std::string& says) {
  return command
      .add_option_function<std::string>(
          flag,
          [flag, least, &target](const std::string& text) {
            target = seconds_of(flag, text, least);
          },
          says)
      ->type_name("SECONDS")
      ->default_str(short_number(std::chrono::duration<double>(target).count()));
}

void refuse_empty_values(CLI::App& app) {
  for (CLI::App* const command : app.get_subcommands({})) {
    for (CLI::Option* const option : command->get_options()) {
      if (option->get_items_expected_max() == 0) continue;  // it takes none
      option->check([](const std::string& text) {
        const bool empty = text.find_first_not_of(' ') == std::string::npos;
        return empty ? "an empty value says nothing" : "";
      });
    }
  }
}

CLI::Option* add_selector(CLI::App& command, std::string& target, const std::string& says) {
  return command.add_option("--backend", target, says)->type_name("SELECTOR");
}

namespace {

/// A name for the file: the same for every way to write it, where the file is there or not.
std::filesystem::path one_name_of(std::filesystem::path path) {
  constexpr int most_links = 40;  // as the kernel's own limit
  std::error_code none;
  for (int links = 0; links < most_links; ++links) {
    const std::filesystem::path next = std::filesystem::read_symlink(path, none);
    if (none) break;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  const std::filesystem::path name =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, none), none);
  return none ? path : name;
}

bool may_be_shared(const std::string& text) {
  std::error_code none;
  const auto status = std::filesystem::status(text, none);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

/// Whether `file` is one of those that a command reads where it is given the folder.
bool is_read_with(const std::string& folder, const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (!fs::is_directory(folder, none) || !fs::is_regular_file(file, none)) return false;
  for (fs::recursive_directory_iterator at(folder, none), end; !none && at != end;
       at.increment(none)) {
    const fs::path extension = at->path().extension();
    const bool is_read = extension == ".json" || extension == ".jsonl";
    std::error_code gone;
    if (is_read && fs::equivalent(at->path(), file, gone)) return true;
  }
  return false;
}

}  // namespace

void refuse_one_file_twice(const std::vector<std::pair<std::string, std::string>>& named) {
  for (std::size_t j = 0; j < named.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      const std::string &a = named[i].second, &b = named[j].second;
      if (a.empty() || b.empty()) continue;
      if (is_read_with(a, b)) {
        std::string what = named[j].first;
        what.append(" ").append(b).append(" is one of the files in ").append(a);
        throw std::invalid_argument(what.append(", ").append(named[i].first));
      }
      if (may_be_shared(a)) continue;
      std::error_code none;
      const bool same = std::filesystem::equivalent(a, b, none) || one_name_of(a) == one_name_of(b);
      if (same) {
        throw std::invalid_argument(named[i].first + " and " + named[j].first + " are both " + b);
      }
    }
  }
}

}  // namespace attest
