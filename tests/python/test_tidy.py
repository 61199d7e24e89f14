"""tool/tidy.py: each check sees what it is for, in a small bad tree, and nothing in a good one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tool"))

from tidy_checks import (  # noqa: E402
    circles,
    citations,
    classes,
    cpp,
    fixtures,
    functions,
    generated,
    imports,
    includes,
    ratchet,
    symbols,
    words,
)
from tidy_checks.tree import Tree  # noqa: E402


def tree(folder: Path, files: dict[str, str]) -> Tree:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Tree(folder)


def test_an_include_that_the_table_does_not_allow_is_found(tmp_path: Path) -> None:
    bad = tree(tmp_path, {"wire/a.hpp": '#include "core/b.hpp"\n#include <vector>\n', "core/b.hpp": ""})
    rules = {"includes": {"wire": [], "core": []}}
    assert includes.check(bad, rules) == ["wire/a.hpp:1: wire must not include core/b.hpp"]
    assert includes.check(bad, {"includes": {"wire": ["core/b.hpp"], "core": []}}) == []


def test_an_include_in_angle_brackets_is_one_too(tmp_path: Path) -> None:
    bad = tree(tmp_path, {"core/a.hpp": "#include <conductor/b.hpp>\n#include <vector>\n", "conductor/b.hpp": ""})
    rules = {"includes": {"core": [], "conductor": ["core"]}}
    assert includes.check(bad, rules) == ["core/a.hpp:1: core must not include conductor/b.hpp"]


def test_an_include_by_a_path_beside_the_file_is_followed(tmp_path: Path) -> None:
    bad = tree(
        tmp_path, {"wire/a.hpp": '#include "../core/b.hpp"\n', "core/b.hpp": '#include "c.hpp"\n', "core/c.hpp": ""}
    )
    assert includes.check(bad, {"includes": {"wire": [], "core": []}}) == [
        "wire/a.hpp:1: wire must not include core/b.hpp"
    ]


def test_a_folder_without_a_row_in_the_table_is_found(tmp_path: Path) -> None:
    bad = tree(tmp_path, {"new/a.hpp": ""})
    assert "not in the table" in includes.check(bad, {"includes": {}})[0]


FIXTURES = {"fixtures": {"users": ["scenario", "oracle"]}, "includes": {"core": [], "scenario": ["core", "testing"]}}


def test_a_fixture_in_code_that_is_shipped_is_found_also_by_a_detour(tmp_path: Path) -> None:
    files = {
        "testing/rig.hpp": "",
        "core/a_test.cpp": '#include "testing/rig.hpp"\n#include "oracle/c.hpp"\n',
        "core/b_test.hpp": '#include "testing/rig.hpp"\n',
        "oracle/c.hpp": '#include "testing/rig.hpp"\n',
        "scenario/d.cpp": '#include "testing/rig.hpp"\n',
    }
    assert fixtures.check(tree(tmp_path, files), FIXTURES) == []
    for name in ("testing/rig.hpp", "core/b_test.hpp", "oracle/c.hpp"):
        bad = tree(tmp_path, {**files, "core/e.hpp": f'#include <map>\n#include "{name}"\n'})
        assert fixtures.check(bad, FIXTURES) == [f"core/e.hpp:2: {name} is for tests, and this is not"]


def test_a_row_that_would_let_shipped_code_include_fixtures_is_found(tmp_path: Path) -> None:
    rules = {**FIXTURES, "includes": {"core": ["testing/rig.hpp"], "scenario": ["testing"]}}
    assert fixtures.check(tree(tmp_path, {}), rules) == [
        "tool/tidy.toml: [includes] lets core include testing, which only scenario, oracle may"
    ]


PACKAGES = {"imports": {"packages": ["base", "machine", "run"], "of": {"programs": [], "tool": ["dryfly.machine"]}}}


def test_a_package_that_imports_from_one_below_it_is_found(tmp_path: Path) -> None:
    files = {
        "python/dryfly/base/units.py": "def late():\n    from dryfly.run import runner\n",
        "python/dryfly/machine/load.py": "from dryfly.base import units\n",
        "python/dryfly/run/runner.py": "import dryfly.machine.load\n",
    }
    assert imports.check(tree(tmp_path, files), PACKAGES) == [
        "python/dryfly/base/units.py:2: base must not import dryfly.run.runner: run is below it"
    ]


def test_an_exception_of_an_import_is_known_and_found_when_it_is_no_longer_needed(tmp_path: Path) -> None:
    files = {"python/dryfly/base/units.py": "from dryfly.run import runner\n", "python/dryfly/run/runner.py": ""}
    needed = "python/dryfly/base/units.py -> dryfly.run.runner"
    rules = {"imports": {**PACKAGES["imports"], "exceptions": [needed, "python/dryfly/x.py -> dryfly.y"]}}
    assert imports.check(tree(tmp_path, files), rules) == [
        "[imports] exception 'python/dryfly/x.py -> dryfly.y' is no longer needed"
    ]


def test_a_package_that_the_table_lacks_is_found(tmp_path: Path) -> None:
    bad = tree(tmp_path, {"python/dryfly/odd/a.py": "from dryfly.base import b\n", "python/dryfly/base/b.py": ""})
    assert "package odd is not in the table" in imports.check(bad, PACKAGES)[0]


def test_modules_that_import_each_other_are_found_once_however_far_apart(tmp_path: Path) -> None:
    files = {
        "python/dryfly/__init__.py": "from dryfly.base import units\n",
        "python/dryfly/base/units.py": "import dryfly\nfrom dryfly.base.files import write\n",
        "python/dryfly/base/files.py": "def late():\n    from dryfly.base import folder\n",
        "python/dryfly/base/folder.py": "if TYPE_CHECKING:\n    from dryfly.base.units import parse\n",
        "python/dryfly/base/above.py": "from dryfly.base import files, folder, units\n",
    }
    circle = "dryfly.base.files -> dryfly.base.folder -> dryfly.base.units -> dryfly.base.files"
    assert circles.check(tree(tmp_path, files), {}) == [f"{circle}: these modules import each other"]
    files["python/dryfly/base/folder.py"] = ""
    assert circles.check(tree(tmp_path, files), {}) == []


def test_a_relative_import_is_found(tmp_path: Path) -> None:
    bad = tree(tmp_path, {"python/dryfly/base/a.py": "from ..cli import main\n"})
    rules = {"imports": {"packages": ["base"]}}
    assert imports.check(bad, rules) == ["python/dryfly/base/a.py:1: import it by its whole name"]


def test_other_folders_import_only_what_they_may(tmp_path: Path) -> None:
    bad = tree(tmp_path, {"programs/a.py": "import dryfly\n", "tool/b.py": "from dryfly.machine import load\n"})
    assert imports.check(bad, PACKAGES) == ["programs/a.py:1: programs must not import dryfly"]


CLASS = """
// class Commented { int a; };
enum class Kind : int { one, two };
class Big final : public Base<int, long> {
 public:
  explicit Big(int a) : a_{a}, b_(a) {}
  Big(const Big&) = delete;
  ~Big() = default;
  template <typename T>
  T twice(T value) const { return value; }
  bool operator<(const Big& other) const { return a_ < other.a_; }
  static constexpr int limit = 3;
  [[nodiscard]] std::map<int, std::function<void(int)>> table() const;

 private:
  struct Inner {
    int x = 0;
    int y = 0, z = 0;
    void (*call)(int) = nullptr;
  };
  using Name = int;
  friend class Other;
  std::function<void(int)> handler_;
  int a_{0};
  int b_ = twice(2);
  std::array<int, 2> c_{1, 2};
};
"""


def test_methods_and_fields_of_a_class_are_counted() -> None:
    big, inner = cpp.classes(CLASS)
    assert (big.name, big.methods, big.fields, big.is_data) == ("Big", 4, 4, False)
    assert (inner.name, inner.methods, inner.fields, inner.is_data) == ("Inner", 0, 4, True)


def class_rules(**exceptions: dict[str, int]) -> dict[str, Any]:
    return {"classes": {"folders": ["core"], "methods": 3, "fields": 3, "data": 3, "exceptions": exceptions}}


def test_a_class_with_too_many_methods_or_fields_is_found(tmp_path: Path) -> None:
    assert classes.check(tree(tmp_path, {"core/big.hpp": CLASS}), class_rules()) == [
        "core/big.hpp: Big: 4 methods, at most 3",
        "core/big.hpp: Big: 4 fields, at most 3",
        "core/big.hpp: Inner: 4 fields of a struct, at most 3",
    ]


def test_a_class_that_several_files_define_is_found(tmp_path: Path) -> None:
    files = {
        "core/a.cpp": "namespace x {\nint A::one() { return 1; }\n}\n",
        "core/b.cpp": "namespace x {\nnamespace {\nint helper() { return 2; }\n}\nA::A(int b) : b_{b} {}\n}\n",
        "core/a_test.cpp": "int A::two() { return 2; }\n",
    }
    assert classes.check(tree(tmp_path, files), class_rules()) == ["core: A: 2 .cpp files that define it, at most 1"]


def test_a_class_is_defined_in_its_own_folder_however_it_is_called_there(tmp_path: Path) -> None:
    files = {
        "core/a.hpp": "namespace x {\nclass A {\n  int one();\n};\n}\n",
        "core/a.cpp": "namespace x {\nint A::one() { return 1; }\n}\n",
        "core/b.cpp": "int x::A::two() { return 2; }\n",
        "core/other/c.cpp": "namespace x {\nint A::three() { return 3; }\n}\n",
    }
    assert classes.check(tree(tmp_path, files), class_rules()) == [
        "core/other/c.cpp:2: defines A::three, of core",
        "core: A: 2 .cpp files that define it, at most 1",
    ]


def test_a_class_is_seen_behind_a_macro_and_with_any_base_and_a_struct_that_hides_something_is_one() -> None:
    text = "class API A {};\nclass B : public C<T(int)> {};\nstruct D {\n private:\n  int hidden;\n};\nstruct E {};\n"
    assert [(each.name, each.is_data) for each in cpp.classes(text)] == [
        ("A", False), ("B", False), ("D", False), ("E", True),
    ]  # fmt: skip


def test_an_exception_is_a_limit_and_goes_when_it_is_no_longer_needed() -> None:
    def findings(value: int) -> list[str]:
        return ratchet.over({"a/b.hpp: Big": value}, most=3, exceptions={"Big": 5}, what="methods")

    assert findings(5) == []
    assert findings(6) == ["a/b.hpp: Big: 6 methods, at most 5 by its exception"]
    assert findings(3) == ["tool/tidy.toml: the exception Big (methods) is no longer needed"]


def test_a_long_function_is_found_with_its_lines(tmp_path: Path) -> None:
    body = "  if (a) {\n    a = 2;\n  }\n  return a;\n}\n"
    long = f"namespace x {{\nint A::f(\n    int a) {{\n{body}int g() {{ return 1; }}\n}}\n"
    rules = {"functions": {"folders": ["core"], "lines": 6}}
    assert functions.check(tree(tmp_path, {"core/a.cpp": long}), rules) == ["core/a.cpp: A::f: 7 lines, at most 6"]


CITED: dict[str, Any] = {"citations": {"never": ["fact sheet"], "left_out": []}}
GOOD_PAGES = {
    "docs/model/links.md": "# Links\n## What `rate` is\n",
    "data/nic.toml": "[[row]]\nid = 'E1'\n[table.inner]\n",
}


@pytest.mark.parametrize(
    ("cited", "why"),
    [
        ("docs/model/none.md", "is not there"),
        ("docs/model/links.md#what", "no such heading"),
        ("data/none.toml", "is not there"),
        ("data/nic.toml#E2", "no such row"),
        ("data/nic.toml#table.outer", "no such row"),
        ("docs/decision/0042", "is not there"),
        ("fact sheet B2", "citations of what is not in this repository"),
    ],
)
def test_a_citation_that_leads_nowhere_is_found(tmp_path: Path, cited: str, why: str) -> None:
    findings = citations.check(tree(tmp_path, {**GOOD_PAGES, "core/a.hpp": f"// Models {cited}.\n"}), CITED)
    assert len(findings) == 1
    assert why in findings[0]


def test_a_makefile_and_a_script_cite_too(tmp_path: Path) -> None:
    bad = tree(tmp_path, {**GOOD_PAGES, "Makefile": "# docs/model/none.md\n", "a.sh": "# docs/model/NIC.md\n"})
    assert citations.check(bad, CITED) == [
        "a.sh:1: cites docs/model/NIC.md, which is not there",
        "Makefile:1: cites docs/model/none.md, which is not there",
    ]


@pytest.mark.parametrize(
    "cited",
    [
        "docs/model/links.md#what-rate-is",
        "docs/model/links.md",
        "data/nic.toml#E1",
        "data/nic.toml#table.inner",
        "data/NAME.toml",
    ],
)
def test_a_citation_that_leads_somewhere_is_none_of_its_business(tmp_path: Path, cited: str) -> None:
    assert citations.check(tree(tmp_path, {**GOOD_PAGES, "core/a.hpp": f"// Models {cited}.\n"}), CITED) == []


def test_a_link_of_a_page_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = "[a](model/links.md#links) [b](model/none.md) [c](#here) [d](https://x.org/none)\n"
    findings = citations.check(tree(tmp_path, {**GOOD_PAGES, "docs/a.md": page}), CITED)
    assert findings == [
        "docs/a.md: links to model/none.md, which is not there",
        "docs/a.md: links to #here, but the page has no such heading",
    ]


def test_a_taken_word_is_found_in_code_but_not_in_its_own_part(tmp_path: Path) -> None:
    row = {"pattern": r"\bbaton\b", "in": ["core", "conductor"], "except": ["conductor"], "because": "a node's turn",
           "code_only": True}  # fmt: skip
    files = {"core/a.hpp": "// a baton\nint baton;\n", "conductor/b.hpp": "int baton;\n", "wire/c.hpp": "int baton;\n"}
    assert words.check(tree(tmp_path, files), {"words": [row]}) == ['core/a.hpp:2: "baton": a node\'s turn']


def test_a_symbol_that_the_code_does_not_have_is_found(tmp_path: Path) -> None:
    files = {
        "ARCHITECTURE.md": "`Here::f` `Gone::f` `core/none.cpp` `core/a.cpp`",
        "core/a.cpp": "// Gone\nvoid Here::f() {}",
    }
    assert symbols.check(tree(tmp_path, files), {"symbols": {"pages": ["ARCHITECTURE.md"]}}) == [
        "ARCHITECTURE.md names `Gone::f`, which the code does not have",
        "ARCHITECTURE.md names `core/none.cpp`, which is not there",
    ]


def test_a_generated_file_that_is_stale_is_found(tmp_path: Path) -> None:
    program = "import sys\nprint('page.md is stale')\nsys.exit('--check' in sys.argv)\n"
    bad = tree(tmp_path, {"tool/make.py": program})
    assert generated.check(bad, {"generated": {"commands": [["tool/make.py"]]}}) == ["page.md is stale"]


def test_this_repository_is_tidy() -> None:
    import subprocess

    done = subprocess.run([sys.executable, ROOT / "tool" / "tidy.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
