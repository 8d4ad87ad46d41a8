"""Addresses of small pencil puzzles with their answers, for the tests of commands and page."""

LINK = "https://puzz.link/p?"
PUZZLES = {  # made by the generators, each with one solution
    "lightup": (f"{LINK}lightup/5/4/.g.hcl.h.gb", "....o/.o.../o..../...o."),
    "nurikabe": (f"{LINK}nurikabe/5/4/g2n2h3k1", "..###/###.#/.#..#/.###."),
    "heyawake": (f"{LINK}heyawake/5/4/lfl02lk0k0", ".#.../...#./#.#../...#."),
    "tapa": (f"{LINK}tapa/5/4/1h2k34g8m", "...../.###./.#.##/####."),
}
