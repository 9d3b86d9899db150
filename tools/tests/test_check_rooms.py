from __future__ import annotations

import unittest

import check_rooms
from made_up import MadeUpTree

MAP = """
# spillway_room(ghost DEPS base)
spillway_room(base LINK fmt::fmt)
spillway_room(journal DEPS base LINK xxhash)
spillway_room(drain
  DEPS base journal)
spillway_room_map(mpi DEPS base)
"""
HEADER = "#pragma once\n"
ROOMS = {"CMakeLists.txt": MAP, "src/base/a.h": HEADER, "src/journal/j.h": HEADER, "src/drain/d.h": HEADER,
         "src/mpi/m.h": HEADER}


class CheckRooms(MadeUpTree):
    def problems(self, files: dict[str, str]) -> list[str]:
        """Of the made-up tree with these files added."""
        return check_rooms.check(self.tree(ROOMS | files))[0]

    def test_the_map_is_read_from_cmake(self) -> None:
        self.assertEqual(check_rooms.read_map(self.tree(ROOMS)),
                         {"base": [], "journal": ["base"], "drain": ["base", "journal"], "mpi": ["base"]})

    def test_a_tree_that_keeps_the_map_is_clean(self) -> None:
        text = '#include "journal/j.h"\n#include "drain/d.h"\n#include <map>\n'
        self.assertEqual(self.problems({"src/drain/d.cc": text}), [])

    def test_an_include_against_the_arrow(self) -> None:
        problems = self.problems({"src/base/a.cc": '#include "base/a.h"\n#include "drain/d.h"\n'})
        self.assert_problem(problems, "src/base/a.cc:2", "base may not include drain")

    def test_a_room_that_is_not_on_the_map(self) -> None:
        self.assert_problem(self.problems({"src/cellar/c.h": HEADER}), "src/cellar", "not on the map")

    def test_a_dependency_that_is_no_room(self) -> None:
        problems = self.problems({"cmake/More.cmake": "spillway_room_map(cli DEPS attic)\n"})
        self.assert_problem(problems, "cli needs attic")

    def test_a_circle(self) -> None:
        problems = self.problems({"cmake/More.cmake": "spillway_room(base DEPS drain)\n"})
        self.assert_problem(problems, "circle", "drain")

    def test_mpi_h_only_where_mpi_is_spoken(self) -> None:
        problems = self.problems({"src/drain/d.cc": "#include <mpi.h>\n", "src/mpi/m.cc": "#include <mpi.h>\n",
                                  "examples/e.c": "#include <mpi.h>\n", "tests/unit/t.cc": '#include "mpi.h"\n'})
        self.assertEqual(len(problems), 2, problems)
        self.assert_problem(problems, "src/drain/d.cc:1", "mpi.h")
        self.assert_problem(problems, "tests/unit/t.cc:1", "mpi.h")

    def test_a_header_without_pragma_once(self) -> None:
        problems = self.problems({"src/base/b.h": "// #pragma once\nint b();\n"})
        self.assert_problem(problems, "src/base/b.h:1", "#pragma once")

    def test_an_include_of_nothing(self) -> None:
        problems = self.problems({"src/drain/d.cc": '#include "drain/gone.h"\n', "bench/b.c": '#include "gone.h"\n'})
        self.assert_problem(problems, "src/drain/d.cc:1", "not a file of src")
        self.assert_problem(problems, "bench/b.c:1", "nowhere")

    def test_an_include_from_beside_must_name_its_room(self) -> None:
        problems = self.problems({"src/base/a.cc": '#include "a.h"\n'})
        self.assert_problem(problems, "src/base/a.cc:1", 'as "base/..."')

    def test_the_public_interface_is_open_to_all(self) -> None:
        files = {"include/spillway/api.h": HEADER, "src/mpi/m.cc": '#include "spillway/api.h"\n'}
        self.assertEqual(self.problems(files), [])

    def test_an_include_in_a_comment_does_not_count(self) -> None:
        self.assertEqual(self.problems({"src/base/a.cc": '/* #include "drain/d.h" */\n'}), [])

    def test_the_program_fails_on_a_problem_and_on_an_empty_tree(self) -> None:
        self.assertEqual(check_rooms.main([str(self.tree(ROOMS))]), 0)
        self.assertEqual(check_rooms.main([str(self.tree(ROOMS | {"src/base/b.h": ""}))]), 1)
        self.assertEqual(check_rooms.main([str(self.tree({}))]), 1)


if __name__ == "__main__":
    unittest.main(buffer=True)
