from __future__ import annotations

import shutil
import unittest

import check_headers
from made_up import MadeUpTree

GOOD = {"src/base/a.h": "#pragma once\n#include <vector>\ninline std::vector<int> a() { return {}; }\n"}


@unittest.skipUnless(shutil.which("clang++"), "clang++ is not installed")
class CheckHeaders(MadeUpTree):
    def status(self, files: dict[str, str], *options: str) -> int:
        return check_headers.main([str(self.tree(files)), *options])

    def test_a_header_that_compiles_alone(self) -> None:
        self.assertEqual(self.status(GOOD | {"src/drain/d.h": '#pragma once\n#include "base/a.h"\nstruct D {};\n'}), 0)

    def test_a_header_that_leans_on_its_neighbours(self) -> None:
        self.assertEqual(self.status(GOOD | {"src/base/b.h": "#pragma once\nstd::vector<int> b();\n"}), 1)

    def test_a_header_that_may_be_included_only_once(self) -> None:
        self.assertEqual(self.status(GOOD | {"src/base/b.h": "struct B {};\n"}), 1)

    def test_headers_that_speak_mpi_need_one(self) -> None:
        files = GOOD | {"src/mpi/m.h": "#pragma once\n#include <mpi.h>\nMPI_File m();\n",
                        "prefix/include/mpi.h": "typedef void* MPI_File;\n"}
        self.assertEqual(self.status(files), 0)
        root = self.tree(files)
        self.assertEqual(check_headers.main([str(root), "--mpi", str(root / "prefix")]), 0)
        self.assertEqual(check_headers.main([str(root), "--mpi", str(root / "elsewhere")]), 1)

    def test_no_header_at_all_is_a_failure(self) -> None:
        self.assertEqual(self.status({}), 1)


if __name__ == "__main__":
    unittest.main(buffer=True)
