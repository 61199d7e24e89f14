// Lists of PMIx's key-value pairs, which own the texts and arrays that they point to.
#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "core/unit/check.hpp"
#include "preload/pmix/pmix_abi.hpp"

namespace dryfly::pmix {

class InfoList {
 public:
  void add(const char* key, const std::string& text) {
    texts_.push_back(text);
    fresh(key, Type::text).text = texts_.back().c_str();
  }
  void add(const char* key, bool flag) { fresh(key, Type::boolean).flag = flag; }
  void add(const char* key, std::uint32_t number) { fresh(key, Type::uint32).uint32 = number; }
  void add_short(const char* key, int number) { fresh(key, Type::uint16).uint16 = static_cast<std::uint16_t>(number); }
  void add_rank(const char* key, int rank) { fresh(key, Type::rank).uint32 = static_cast<std::uint32_t>(rank); }
  void add(const char* key, InfoList&& list) {
    lists_.push_back(std::move(list));
    InfoList& kept = lists_.back();
    arrays_.push_back({Type::info, kept.size(), kept.data()});
    fresh(key, Type::array).array = &arrays_.back();
  }

  Info* data() { return infos_.data(); }
  std::size_t size() const { return infos_.size(); }

 private:
  Value& fresh(const char* key, Type type) {
    DRYFLY_CHECK(std::strlen(key) <= longest_key);
    Info& info = infos_.emplace_back();
    std::memset(&info, 0, sizeof info);
    std::strcpy(info.key, key);
    info.value.type = type;
    return info.value;
  }

  std::vector<Info> infos_;
  // Deques: what is in them keeps its address, also when the list is moved.
  std::deque<std::string> texts_;
  std::deque<InfoList> lists_;
  std::deque<Array> arrays_;
};

}  // namespace dryfly::pmix
