"""Random solutions of the pencil puzzles: walls, seas, lights, rooms and their shaded cells."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from random import Random

from tiltrm.tasks.pencil.cells import CellBoard, rooms_of, segments, spans
from tiltrm.tasks.pencil.puzzle import between_rooms, edges


def connected_without(board: CellBoard, marked: set[int], cell: int) -> bool:
    """Whether a connected set of cells stays connected without one of them."""
    around = board.around(cell)
    ring = [other is not None and other in marked for other in around]
    sides = [ring[at] for at in (1, 3, 5, 7)]
    corners = [ring[at] for at in (2, 4, 6, 0)]
    joined = sum(sides[n] and corners[n] and sides[(n + 1) % 4] for n in range(4))
    if sum(sides) - joined <= 1:  # its neighbours are connected by the cells round it
        return sum(sides) > 0
    rest = marked - {cell}
    return len(board.reach(next(iter(rest)), rest)) == len(rest)


def squares_with(board: CellBoard, marked: Collection[int], cell: int) -> bool:
    """Whether the cell would complete a square of 2 x 2 marked cells."""
    around = board.around(cell)
    return any(
        all(around[at % 8] is not None and around[at % 8] in marked for at in (n, n + 1, n + 2))
        for n in (1, 3, 5, 7)
    )


def wall(board: CellBoard, share: float, bends: float, random: Random) -> set[int]:
    """A connected wall without a square that covers a share of the board at most.

    A cell that would touch the wall in two places is refused with the chance `bends`.
    """
    first = random.randrange(board.cells)
    shaded, front = {first}, list(board.beside[first])
    while front and len(shaded) < share * board.cells:
        at = random.randrange(len(front))
        front[at], front[-1] = front[-1], front[at]
        cell = front.pop()
        if cell in shaded or squares_with(board, shaded, cell):
            continue
        touching = sum(other in shaded for other in board.beside[cell])
        if touching > 1 and random.random() < bends:
            continue
        shaded.add(cell)
        front += [other for other in board.beside[cell] if other not in shaded]
    return shaded


def sea(board: CellBoard, islands: int, largest: int, random: Random) -> set[int] | None:
    """A connected sea without a square, with about so many islands of limited size, or None."""
    water = set(range(board.cells))
    squares = list(board.squares())
    random.shuffle(squares)
    for square in squares:
        if not water.issuperset(square):
            continue
        for cell in random.sample(square, 4):
            if can_be_land(board, water, cell, largest):
                water.discard(cell)
                break
        else:
            return None
    cells = random.sample(range(board.cells), board.cells)
    count = len(board.parts(set(range(board.cells)) - water))
    for cell in cells * 3:
        if count <= islands:
            break
        if cell in water and len(water) > 0.4 * board.cells:
            touched = parts_beside(board, water, cell)
            if touched and can_be_land(board, water, cell, largest):
                water.discard(cell)
                count -= len(touched) - 1
    return water


def parts_beside(board: CellBoard, water: set[int], cell: int) -> list[list[int]]:
    """The islands that a cell of the sea touches."""
    land = set(range(board.cells)) - water
    parts: list[list[int]] = []
    for other in board.beside[cell]:
        if other in land and not any(other in part for part in parts):
            parts.append(board.reach(other, land))
    return parts


def can_be_land(board: CellBoard, water: set[int], cell: int, largest: int) -> bool:
    """Whether a cell of the sea can become land: the sea stays connected, no island too large."""
    size = 1 + sum(len(part) for part in parts_beside(board, water, cell))
    return size <= largest and connected_without(board, water, cell)


def can_be_sea(board: CellBoard, water: set[int], cell: int) -> bool:
    """Whether a cell of the land can become sea: it touches the sea and completes no square."""
    touches = any(other in water for other in board.beside[cell])
    return touches and not squares_with(board, water, cell)


def mirrored(board: CellBoard, random: Random) -> Callable[[int], set[int]]:
    """A symmetry for black cells, as people like them: a cell -> all cells that go with it."""
    w, h = board.width, board.height
    choice = random.random()

    def partners(cell: int) -> set[int]:
        row, column = divmod(cell, w)
        turned = (h - 1 - row) * w + (w - 1 - column)
        if choice < 0.35:
            return {cell}
        if choice < 0.8:
            return {cell, turned}
        if choice < 0.9:
            return {cell, row * w + (w - 1 - column)}
        return {cell, turned, row * w + (w - 1 - column), (h - 1 - row) * w + column}

    return partners


def lights(
    board: CellBoard, black: Collection[int], first: Iterable[int], random: Random
) -> set[int]:
    """Lights that light all cells and do not see each other, the first ones where possible."""
    seen: list[set[int]] = [set() for _ in range(board.cells)]
    for line in board.lines():
        for segment in segments(line, black):
            for cell in segment:
                seen[cell].update(segment)
    placed: set[int] = set()
    lit: set[int] = set(black)
    for cell in (*first, *random.sample(range(board.cells), board.cells)):
        if cell not in lit:
            placed.add(cell)
            lit |= seen[cell]
    return placed


def rooms(board: CellBoard, count: int, random: Random) -> list[int]:
    """About so many rooms, all or some of them rectangles: the room of each cell."""
    labels = [0] * board.cells
    rectangles = [(0, 0, board.height, board.width)]
    pieces = round(count * (1.0 if random.random() < 0.6 else random.uniform(1.0, 1.6)))
    while len(rectangles) < pieces:
        rectangles.sort(key=lambda each: each[2] * each[3] * random.uniform(0.3, 1.0))
        top, left, height, width = rectangles.pop()
        if height * width < 2:
            rectangles.append((top, left, height, width))
            break
        if random.random() * (height + width) < height and height > 1:
            cut = random.randint(1, height - 1)
            rectangles += [(top, left, cut, width), (top + cut, left, height - cut, width)]
        else:
            cut = random.randint(1, width - 1) if width > 1 else 0
            if not cut:
                cut = random.randint(1, height - 1)
                rectangles += [(top, left, cut, width), (top + cut, left, height - cut, width)]
            else:
                rectangles += [(top, left, height, cut), (top, left + cut, height, width - cut)]
    for number, (top, left, height, width) in enumerate(rectangles):
        for row in range(top, top + height):
            for column in range(left, left + width):
                labels[row * board.width + column] = number
    for _ in range(len(rectangles) - count):  # joined, rectangles are no longer rectangles
        pairs = [(a, b) for a, b in edges(*board[:2]) if labels[a] != labels[b]]
        if pairs:
            cell, other = random.choice(pairs)
            kept, gone = labels[cell], labels[other]
            labels = [kept if label == gone else label for label in labels]
    return labels


def rectangles(board: CellBoard, area: float, random: Random) -> list[int]:
    """Rectangular rooms of about this area, hardly any of one cell: the room of each cell."""
    labels = [0] * board.cells
    left = [(0, 0, board.height, board.width)]
    count = 0
    while left:
        top, start, height, width = left.pop()
        if height * width < 4 or height * width <= area * random.uniform(0.6, 1.7):
            for row in range(top, top + height):
                first = row * board.width + start
                labels[first : first + width] = [count] * width
            count += 1
            continue
        if width == 1 or (height > 1 and random.random() * (height + width) < height):
            cut = _cut_at(height, width, random)
            left += [(top, start, cut, width), (top + cut, start, height - cut, width)]
        else:
            cut = _cut_at(width, height, random)
            left += [(top, start, height, cut), (top, start + cut, height, width - cut)]
    return labels


def _cut_at(length: int, across: int, random: Random) -> int:
    """Where a side of this length is cut: seldom one cell from its end."""
    least = 1 if across > 1 and random.random() < 0.25 else min(2, length // 2)
    return random.randint(least, length - least)


def split_room(
    board: CellBoard, labels: Sequence[int], one: int, two: int, random: Random
) -> list[int] | None:
    """The room of two cells as two rooms: cut straight where it is a rectangle, mostly.

    Otherwise the two grow from these cells. None where it is too small.
    """
    if one == two:
        return None
    room, new = labels[one], max(labels) + 1
    cut = _cut(
        board, [cell for cell, label in enumerate(labels) if label == room], one, two, random
    )
    if cut is not None and random.random() < 0.85:
        return [new if cell in cut else label for cell, label in enumerate(labels)]
    owner = {one: room, two: new}
    front = [one, two]
    while front:
        cell = front.pop(random.randrange(len(front)))
        for other in board.beside[cell]:
            if labels[other] == room and other not in owner:
                owner[other] = owner[cell]
                front.append(other)
    return [owner.get(cell, label) for cell, label in enumerate(labels)]


def is_rectangle(board: CellBoard, room: Sequence[int]) -> bool:
    """Whether the cells fill a rectangle."""
    rows, columns = {cell // board.width for cell in room}, {cell % board.width for cell in room}
    return (max(rows) - min(rows) + 1) * (max(columns) - min(columns) + 1) == len(room)


def _cut(
    board: CellBoard, room: Sequence[int], one: int, two: int, random: Random
) -> frozenset[int] | None:
    """The part of a rectangle on one side of a line between two of its cells, or None."""
    if not is_rectangle(board, room):
        return None
    parts = list(_beyond_lines(board, room, one, two))
    large = [part for part in parts if min(len(part), len(room) - len(part)) > 1]
    return random.choice(large or parts)


def _beyond_lines(
    board: CellBoard, room: Sequence[int], one: int, two: int
) -> Iterator[frozenset[int]]:
    """The parts of a room beyond each straight line between two of its cells."""
    for axis in (0, 1):  # rows, then columns
        place = {cell: divmod(cell, board.width)[axis] for cell in room}
        low, high = sorted((place[one], place[two]))
        for line in range(low, high):
            yield frozenset(cell for cell in room if place[cell] > line)


def straight_cuts(
    board: CellBoard, labels: Sequence[int], pairs: Iterable[tuple[int, int]], random: Random
) -> list[list[int]]:
    """Rooms with one more straight border, between two cells of a pair that share a room.

    In random order, those that leave a room of one cell last.
    """
    cuts: dict[frozenset[int], tuple[bool, float]] = {}
    rooms = rooms_of(labels)
    for one, two in pairs:
        room = rooms[labels[one]]
        for cut in _beyond_lines(board, room, one, two):
            cuts[cut] = min(len(cut), len(room) - len(cut)) < 2, random.random()
    new = max(labels) + 1
    return [
        [new if cell in cut else label for cell, label in enumerate(labels)]
        for cut in sorted(cuts, key=cuts.__getitem__)
    ]


def give_cell(board: CellBoard, labels: Sequence[int], cell: int, other: int) -> list[int] | None:
    """The cell in the room of its neighbour; None where its own room would fall apart."""
    rest = {each for each, label in enumerate(labels) if label == labels[cell]} - {cell}
    if not rest or len(board.reach(min(rest), rest)) < len(rest):
        return None
    return [labels[other] if each == cell else label for each, label in enumerate(labels)]


def crossing_lines(
    board: CellBoard, labels: Sequence[int], shaded: Collection[int]
) -> list[Sequence[int]]:
    """The runs of unshaded cells through three rooms."""
    borders = between_rooms(labels, board.width, board.height)
    walled = {pair for pair, wall in zip(edges(*board[:2]), borders, strict=True) if wall}
    found = (span for line in board.lines() for span in spans(line, walled))
    return [span for span in found if not any(cell in shaded for cell in span)]


def can_be_shaded(board: CellBoard, shaded: set[int], cell: int) -> bool:
    """Whether a cell touches no shaded cell and leaves the others connected."""
    if cell in shaded or any(other in shaded for other in board.beside[cell]):
        return False
    return connected_without(board, set(range(board.cells)) - shaded, cell)


def densely_shaded(board: CellBoard, shaded: set[int], share: float, random: Random) -> set[int]:
    """With further shaded cells, until they are this share of the board or no cell is left."""
    shaded = set(shaded)
    for cell in random.sample(range(board.cells), board.cells):
        if len(shaded) >= share * board.cells:
            break
        if can_be_shaded(board, shaded, cell):
            shaded.add(cell)
    return shaded


def shading(
    board: CellBoard, labels: Sequence[int], share: float, random: Random
) -> tuple[list[int], set[int]]:
    """Shaded cells that keep the rules of Heyawake, about a share of the board, and their rooms.

    Rooms are joined where no cell of a line through three of them can be shaded.
    """
    labels = list(labels)
    shaded: set[int] = set()
    lines = crossing_lines(board, labels, shaded)
    while lines:
        span = random.choice(lines)
        for cell in random.sample(span, len(span)):
            if can_be_shaded(board, shaded, cell):
                shaded.add(cell)
                lines = [each for each in lines if not any(cell in shaded for cell in each)]
                break
        else:
            kept, gone = labels[span[0]], labels[span[1]]
            labels = [kept if label == gone else label for label in labels]
            lines = crossing_lines(board, labels, shaded)
    return labels, densely_shaded(board, shaded, share, random)
