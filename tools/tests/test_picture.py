from __future__ import annotations

import unittest
import xml.etree.ElementTree as ElementTree

import picture

SVG = "{http://www.w3.org/2000/svg}"


def rectangles(svg: str, colour: str) -> list[tuple[float, float]]:
    """(x, width) of the bars of that colour, without the legend's square."""
    found = [(float(r.get("x")), float(r.get("width"))) for r in ElementTree.fromstring(svg).iter(f"{SVG}rect")
             if r.get("fill") == colour]
    return found[1:]


class Timeline(unittest.TestCase):
    def draw(self) -> str:
        without = picture.Run("a < b", "10 s", 10, [picture.Rank(compute=[(0, 5)], visible=[(5, 10)])])
        under = picture.Run("with", "5 s", 5, [picture.Rank(compute=[(0, 5)], background=[(1, 2), (2, 3)])])
        return picture.timeline("title & more", "note", [without, under])

    def test_it_is_well_formed_and_needs_nothing_else(self) -> None:
        svg = self.draw()
        texts = [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
        self.assertIn("a < b", texts)
        self.assertNotIn("href", svg)

    def test_both_runs_share_the_axis(self) -> None:
        svg = self.draw()
        (x1, compute_without), (x2, compute_with) = rectangles(svg, picture.COMPUTE)
        self.assertEqual((x1, compute_without), (x2, compute_with))
        [(x, waiting)] = rectangles(svg, picture.VISIBLE)
        self.assertAlmostEqual(x, x1 + compute_without, places=1)
        self.assertAlmostEqual(waiting, compute_without, places=1)

    def test_neighbours_are_drawn_as_one(self) -> None:
        self.assertEqual(len(rectangles(self.draw(), picture.BACKGROUND)), 1)

    def test_merged(self) -> None:
        self.assertEqual(picture.merged([(3, 4), (0, 1), (1.05, 2)], 0.1), [(0, 2), (3, 4)])
        self.assertEqual(picture.merged([(0, 5), (1, 2)], 0), [(0, 5)])

    def test_tick_step(self) -> None:
        self.assertEqual([picture.tick_step(span, 10) for span in (0, 1, 9.9, 47, 101)], [1, 0.1, 1, 5, 20])


class Throughput(unittest.TestCase):
    def test_more_is_higher_and_all_series_are_named(self) -> None:
        points = [picture.Point(2, 90, 100, 110), picture.Point(4, 900, 1000, 1100)]
        chart = picture.Chart("c", [picture.Series("one", "#010203", points)])
        svg = picture.throughput("t", "n", [chart], "MiB/s", "ranks")
        root = ElementTree.fromstring(svg)
        heights = [float(c.get("cy")) for c in root.iter(f"{SVG}circle") if c.get("fill") == "#010203"][1:]
        self.assertGreater(heights[0], heights[1])
        self.assertIn("one", [text.text for text in root.iter(f"{SVG}text")])


if __name__ == "__main__":
    unittest.main()
