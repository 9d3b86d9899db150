from __future__ import annotations

import unittest

import check_tidy
from made_up import MadeUpTree

README = {"src/base/README.md": "# base\n", "src/drain/README.md": "# drain\n", "src/cli/README.md": "# cli\n"}


class CheckTidy(MadeUpTree):
    def problems(self, files: dict[str, str]) -> list[str]:
        return check_tidy.check(self.tree(README | files))[0]

    def test_long_files(self) -> None:
        problems = self.problems({"src/drain/d.cc": "\n" * 501, "src/drain/ok.cc": "\n" * 500,
                                  "src/drain/d.h": "\n" * 251, "tools/t.py": "\n" * 501})
        self.assertEqual(len(problems), 3, problems)
        self.assert_problem(problems, "src/drain/d.cc:501: lines", "at most 500")
        self.assert_problem(problems, "src/drain/d.h:251: lines", "at most 250")
        self.assert_problem(problems, "tools/t.py:501: lines")

    def test_a_long_file_may_be_excepted_up_to_its_length_and_must_shrink(self) -> None:
        def with_limit(limit: int) -> list[str]:
            exception = f"lines src/drain/d.cc {limit}\n"
            return self.problems({"src/drain/d.cc": "\n" * 600, check_tidy.EXCEPTIONS: exception})

        self.assertEqual(with_limit(600), [])
        self.assert_problem(with_limit(599), "src/drain/d.cc:600: lines")
        self.assert_problem(with_limit(601), "may shrink to 600")

    def test_an_exception_that_nothing_needs(self) -> None:
        problems = self.problems({check_tidy.EXCEPTIONS: "# a comment\nexit src/drain/d.cc\n"})
        self.assert_problem(problems, "'exit src/drain/d.cc' is not needed any more")

    def test_locks_outside_base(self) -> None:
        text = "std::mutex m;\nstd::lock_guard<std::mutex> g(m);\npthread_mutex_lock(&x);\nbase::Mutex fine;\n"
        problems = self.problems({"src/drain/d.cc": text, "src/base/mutex.h": text})
        self.assertEqual([p.split(": ")[0] for p in problems],
                         ["src/drain/d.cc:1", "src/drain/d.cc:2", "src/drain/d.cc:2", "src/drain/d.cc:3"])

    def test_ending_the_process(self) -> None:
        for call in ("exit(1);", "std::abort();", "_exit(2);", "::exit(1);", "std::terminate();"):
            self.assert_problem(self.problems({"src/drain/d.cc": call}), "src/drain/d.cc:1: exit")
        for call in ("on_exit(1);", "loop.exit(1);", "loop->abort();", '"exit(1)";', "// exit(1)", "wants_exit();",
                     "my::exit_code(1);"):
            self.assertEqual(self.problems({"src/drain/d.cc": call}), [], call)

    def test_standard_output(self) -> None:
        for call in ("std::cout << 1;", 'printf("x");', 'std::printf("x");', 'puts("x");', 'fprintf(stdout, "x");',
                     'fmt::print("x");', "write(STDOUT_FILENO, p, n);"):
            self.assert_problem(self.problems({"src/drain/d.cc": call}), "src/drain/d.cc:1: stdout")
        for call in ('fprintf(stderr, "x");', 'snprintf(p, n, "x");', 'fmt::print(stderr, "x");', "std::cerr << 1;"):
            self.assertEqual(self.problems({"src/drain/d.cc": call}), [], call)

    def test_the_command_line_and_the_tests_may_print_and_end(self) -> None:
        text = 'printf("x");\nexit(1);\n'
        self.assertEqual(self.problems({"src/cli/main.cc": text, "src/drain/d_test.cc": text,
                                        "src/drain/test_d.h": text, "examples/e.c": text}), [])

    def test_notes_of_open_work_need_an_issue(self) -> None:
        problems = self.problems({"src/drain/d.cc": "// TODO(#12): later\n// TODO later\n",
                                  "dev": "#!/bin/bash\n# FIXME\n"})
        self.assertEqual(len(problems), 2, problems)
        self.assert_problem(problems, "src/drain/d.cc:2: todo")
        self.assert_problem(problems, "dev:2: todo")

    def test_readmes(self) -> None:
        problems = self.problems({"src/journal/j.cc": "", "src/view/README.md": "x\n" * 41})
        self.assertEqual(len(problems), 2, problems)
        self.assert_problem(problems, "src/journal/README.md", "missing")
        self.assert_problem(problems, "src/view/README.md", "41 lines")

    def test_links(self) -> None:
        text = ("[a](docs/a.md), [its part](docs/a.md#part), [folder](docs), [web](https://example.org/x), [here](#part)\n"
                "`[code](gone.md)`\n```\n[more](gone.md)\n```\n![picture](docs/gone.svg)\n")
        problems = self.problems({"README.md": text, "docs/a.md": "[up](../README.md) [down](b.md)\n",
                                  "build/x.md": "[built](gone.md)\n"})
        self.assertEqual(len(problems), 2, problems)
        self.assert_problem(problems, "README.md:6: link: docs/gone.svg")
        self.assert_problem(problems, "docs/a.md:1: link: b.md")

    def test_the_program_fails_on_a_problem_and_on_an_empty_tree(self) -> None:
        self.assertEqual(check_tidy.main([str(self.tree(README | {"src/drain/d.cc": "int d;\n"}))]), 0)
        self.assertEqual(check_tidy.main([str(self.tree(README | {"src/drain/d.cc": "exit(1);\n"}))]), 1)
        self.assertEqual(check_tidy.main([str(self.tree({}))]), 1)


if __name__ == "__main__":
    unittest.main(buffer=True)
