from __future__ import annotations

import unittest

from source_text import code_of


class CodeOf(unittest.TestCase):
    def test_comments_and_strings_go_and_lines_stay(self) -> None:
        text = 'int a; // exit(1)\nconst char* s = "abort()";\n/* printf(\n puts( */ int b;\nchar c = \'"\'; int d;\n'
        code = code_of(text)
        self.assertEqual(code.count("\n"), text.count("\n"))
        for word in ("exit", "abort", "printf", "puts"):
            self.assertNotIn(word, code)
        for word in ("int a;", "int b;", "int d;"):
            self.assertIn(word, code)

    def test_includes_keep_their_paths(self) -> None:
        self.assertEqual(code_of('#include "base/a.h"  // exit(1)\n'), '#include "base/a.h"\n')

    def test_a_commented_include_is_gone(self) -> None:
        self.assertNotIn("base", code_of('// #include "base/a.h"\n'))

    def test_escapes_raw_strings_and_digit_separators(self) -> None:
        code = code_of('f("a\\"b", R"x(exit(1) ")x", 1\'000\'000, \'\\\'\'); int after;\n')
        self.assertNotIn("exit", code)
        self.assertIn("1'000'000", code)
        self.assertIn("int after;", code)


if __name__ == "__main__":
    unittest.main()
