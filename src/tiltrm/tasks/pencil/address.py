"""puzz.link addresses: PREFIX?NAME/WIDTH/HEIGHT/BODY, where the body depends on the puzzle.

All bodies but that of Heyawake list clues in reading order, and a letter g .. z stands for 1 .. 20
cells without one. Light Up: a digit or letter 0 .. 14 is number % 5 followed by number // 5 cells
without a clue, '.' a black cell without a number. Nurikabe and Sudoku: numbers in base 16, one
digit, or '-' and two, or '+' and three; '.' is '?'. Tapa: a digit 0 .. 8 is itself, '9' is 1111,
'.' is '?', and two digits in base 36 hold two to four numbers, 0 for '?'. Heyawake: the borders
to the right of cells and then below cells, five to a digit in base 32, then a number for each
room as in Nurikabe. The format is that of the pzpr players (puzz.link, pzv.jp and others).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tiltrm.errors import PuzzleError, SizeError
from tiltrm.tasks.pencil.puzzle import (
    HEYAWAKE,
    KINDS,
    LIGHTUP,
    NO_CLUE,
    NURIKABE,
    SUDOKU,
    TAPA,
    UNKNOWN,
    Clue,
    Kind,
    PencilPuzzle,
    enclosed,
    kind_of,
    room_clues,
)

PREFIX = "https://puzz.link/p?"
MOST_CELLS = 10_000  # more than anybody publishes; a longer address is refused before it is read

_ADDRESS = re.compile(
    r"(?P<prefix>(?:https?://)?[\w.~:/-]+\?(?:m[+/])?)(?P<name>[a-z]+)(?:_edit|_play)?/(?P<data>\S*)"
)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_RUNS = "ghijklmnopqrstuvwxyz"  # 1 .. 20 cells without a clue
_LONG = {"-": 2, "+": 3}  # digits of a number in base 16 after each mark
_TAPA_BASES = {2: (360, 6), 3: (396, 4), 4: (460, 2)}  # count of numbers -> offset, base


class Address(NamedTuple):
    """A puzzle, and how its address names the site and the puzzle."""

    puzzle: PencilPuzzle
    prefix: str
    name: str


def is_address(text: str) -> bool:
    """Whether a text looks like an address of a puzzle of any type."""
    return _ADDRESS.fullmatch(text.strip()) is not None


def kind_in(text: str) -> Kind | None:
    """The type that an address names; None where it is no address or of another type."""
    found = _ADDRESS.fullmatch(text.strip())
    return next((kind for kind in KINDS if found and found["name"] in kind.addresses), None)


def read(text: str) -> PencilPuzzle:
    """The puzzle of an address; raises PuzzleError."""
    return parse(text).puzzle


def parse(text: str) -> Address:
    """The puzzle of an address, and the parts that `write` needs to give the same address."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        raise PuzzleError(f"expected an address like {PREFIX}nurikabe/10/10/..., got {text!r:.60}")
    kind = kind_of(found["name"])
    parts = found["data"].rstrip("/").split("/")
    if not parts[0]:
        parts = parts[1:]  # old addresses leave the flags empty
    if len(parts) < 2 or not all(re.fullmatch("[0-9]{1,4}", part) for part in parts[:2]):
        raise PuzzleError(
            f"expected {kind.name}/WIDTH/HEIGHT/CLUES and no variant, got {found['data']!r:.60}"
        )
    width, height = int(parts[0]), int(parts[1])
    if not 0 < width * height <= MOST_CELLS:
        raise PuzzleError(f"expected 1 to {MOST_CELLS} cells, got {width} x {height}")
    puzzle = _read_body(kind, width, height, "/".join(parts[2:]))
    return Address(puzzle, found["prefix"], found["name"])


def write(puzzle: PencilPuzzle, prefix: str = PREFIX, name: str = "") -> str:
    """The address of a puzzle; `name` where the site calls it otherwise, as in akari."""
    body = _write_body(puzzle)
    closing = "/" if body.endswith(".") else ""  # a full stop at the end gets lost in a text
    name = name or puzzle.kind.addresses[0]
    return f"{prefix}{name}/{puzzle.width}/{puzzle.height}/{body}{closing}"


def read_sudoku(text: str) -> str:
    """The 81 characters of a Sudoku's address; '.' is a blank."""
    puzzle = read(text)
    if puzzle.kind != SUDOKU:
        raise PuzzleError(f"expected the address of a sudoku, got that of a {puzzle.kind.name}")
    if (puzzle.width, puzzle.height) != (9, 9):
        raise SizeError(f"expected a sudoku of 9 x 9, got {puzzle.width} x {puzzle.height}")
    if any(clue and not 1 <= clue[0] <= 9 for clue in puzzle.clues):
        raise PuzzleError("expected the digits 1 to 9 in a sudoku, got another number")
    return "".join(str(clue[0]) if clue else "." for clue in puzzle.clues)


def write_sudoku(text: str, prefix: str = PREFIX) -> str:
    """The address of a Sudoku of 81 characters; '.' and '0' are blanks."""
    if not re.fullmatch(r"[0-9.]{81}", text):
        raise PuzzleError(f"expected 81 digits or '.', got {text!r:.90}")
    clues = tuple(NO_CLUE if each in "0." else (int(each),) for each in text)
    return write(PencilPuzzle(SUDOKU, 9, 9, clues), prefix)


def _read_body(kind: Kind, width: int, height: int, body: str) -> PencilPuzzle:
    if kind == HEYAWAKE:
        return _read_rooms(width, height, body)
    clues = _fill(_CODES[kind].read(body), width * height, "cells")
    return PencilPuzzle(kind, width, height, clues)


def _write_body(puzzle: PencilPuzzle) -> str:
    if puzzle.kind == HEYAWAKE:
        right = (puzzle.width - 1) * puzzle.height
        borders = _packed(puzzle.borders[:right]) + _packed(puzzle.borders[right:])
        return borders + _write_numbers(puzzle.room_numbers)
    return _CODES[puzzle.kind].write(puzzle.clues)


def _fill(steps: Iterator[tuple[Clue, int]], count: int, what: str) -> tuple[Clue, ...]:
    """Clues from (clue, places that it and the blanks after it take); raises PuzzleError."""
    clues: list[Clue] = []
    for clue, places in steps:
        if len(clues) >= count or (not clue and len(clues) + places > count):
            raise PuzzleError(f"expected clues for {count} {what}, got more; is the size right?")
        clues += [clue] + [NO_CLUE] * (places - 1)
    if len(clues) < count:
        raise PuzzleError(
            f"expected clues for {count} {what}, got {len(clues)}; the address seems to be cut off"
        )
    return tuple(clues[:count])


def _bad(character: str, kind: str) -> PuzzleError:
    return PuzzleError(f"expected the clues of {kind}, got the character {character!r}")


def _read_four(body: str) -> Iterator[tuple[Clue, int]]:
    for character in body:
        value = _DIGITS.find(character)
        if character == ".":
            yield (UNKNOWN,), 1
        elif 0 <= value < 15:
            yield (value % 5,), 1 + value // 5
        elif character in _RUNS:
            yield NO_CLUE, 1 + _RUNS.index(character)
        else:
            raise _bad(character, LIGHTUP.name)


def _write_four(clues: Sequence[Clue]) -> str:
    text: list[str] = []
    place = blanks = 0
    while place < len(clues):
        clue = clues[place]
        place += 1
        if not clue:
            blanks += 1
            continue
        text.append(_run(blanks))
        blanks = 0
        if clue[0] == UNKNOWN:
            text.append(".")
            continue
        after = next((n for n in range(2) if place + n < len(clues) and clues[place + n]), 2)
        text.append(_DIGITS[clue[0] + 5 * after])
        place += after
    return "".join(text) + _run(blanks)


def _run(blanks: int) -> str:
    """Letters for so many places without a clue, at most 20 to a letter."""
    whole, rest = divmod(blanks, 20)
    return _RUNS[-1] * whole + (_RUNS[rest - 1] if rest else "")


def _read_numbers(body: str) -> Iterator[tuple[Clue, int]]:
    place = 0
    while place < len(body):
        character = body[place]
        length = _LONG.get(character, 0)
        digits = body[place + 1 : place + 1 + length] if length else character
        place += 1 + length
        if character == ".":
            yield (UNKNOWN,), 1
        elif character in _RUNS:
            yield NO_CLUE, 1 + _RUNS.index(character)
        elif len(digits) == (length or 1) and re.fullmatch("[0-9a-f]+", digits):
            yield (int(digits, 16),), 1
        else:
            raise _bad(character, "numbers in base 16")


def _write_numbers(clues: Sequence[Clue]) -> str:
    def one(clue: Clue) -> str:
        if clue[0] == UNKNOWN:
            return "."
        digits = f"{clue[0]:x}"
        return {1: "", 2: "-", 3: "+"}[len(digits)] + digits

    return _joined(clues, one)


def _joined(clues: Sequence[Clue], one: Callable[[Clue], str]) -> str:
    text: list[str] = []
    blanks = 0
    for clue in clues:
        if clue:
            text += (_run(blanks), one(clue))
        blanks = 0 if clue else blanks + 1
    return "".join(text) + _run(blanks)


def _read_tapa(body: str) -> Iterator[tuple[Clue, int]]:
    place = 0
    while place < len(body):
        character = body[place]
        place += 1
        if character == ".":
            yield (UNKNOWN,), 1
        elif character in _RUNS:
            yield NO_CLUE, 1 + _RUNS.index(character)
        elif character == "9":
            yield (1, 1, 1, 1), 1
        elif character in "012345678":
            yield (int(character),), 1
        elif character in "abcdef" and body[place : place + 1] in _DIGITS[1:] + "0":
            yield _several(body[place - 1 : place + 1]), 1
            place += 1
        else:
            raise _bad(character, TAPA.name)


def _several(pair: str) -> Clue:
    """Two digits in base 36 -> two to four numbers."""
    value = int(pair, 36) if len(pair) == 2 else 0
    for count, (offset, base) in _TAPA_BASES.items():
        rest = value - offset
        if 0 <= rest < base**count:
            numbers = [rest // base**power % base for power in range(count - 1, -1, -1)]
            return tuple(number or UNKNOWN for number in numbers)
    raise _bad(pair, TAPA.name)


def _write_tapa(clues: Sequence[Clue]) -> str:
    def one(clue: Clue) -> str:
        if len(clue) == 1:
            return "." if clue[0] == UNKNOWN else str(clue[0])
        if clue == (1, 1, 1, 1):
            return "9"
        value, base = _TAPA_BASES[len(clue)]
        for power, number in enumerate(reversed(clue)):
            value += max(number, 0) * base**power
        return _DIGITS[value // 36] + _DIGITS[value % 36]

    return _joined(clues, one)


def _read_rooms(width: int, height: int, body: str) -> PencilPuzzle:
    right, below = (width - 1) * height, width * (height - 1)
    first = -(-right // 5)
    numbers = first - (-below // 5)
    borders = (*_bits(body[:first], right), *_bits(body[first:numbers], below))
    rooms = enclosed(borders, width, height)
    clues = _fill(_read_numbers(body[numbers:]), max(rooms) + 1, "rooms")
    return PencilPuzzle(HEYAWAKE, width, height, room_clues(rooms, clues), borders)


def _bits(text: str, count: int) -> list[bool]:
    if len(text) != -(-count // 5):
        raise PuzzleError("expected borders for all cells; the address seems to be cut off")
    bits: list[bool] = []
    for character in text:
        value = _DIGITS.find(character)
        if not 0 <= value < 32:
            raise _bad(character, HEYAWAKE.name)
        bits += [bool(value >> place & 1) for place in range(4, -1, -1)]
    return bits[:count]


def _packed(borders: Sequence[bool]) -> str:
    bits = "".join("01"[border] for border in borders)
    bits += "0" * (-len(bits) % 5)
    return "".join(_DIGITS[int(bits[at : at + 5], 2)] for at in range(0, len(bits), 5))


class _Code(NamedTuple):
    read: Callable[[str], Iterator[tuple[Clue, int]]]
    write: Callable[[Sequence[Clue]], str]


_CODES = {
    LIGHTUP: _Code(_read_four, _write_four),
    NURIKABE: _Code(_read_numbers, _write_numbers),
    SUDOKU: _Code(_read_numbers, _write_numbers),
    TAPA: _Code(_read_tapa, _write_tapa),
}
