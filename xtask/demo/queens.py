"""The queens puzzle, a few times over: what `cargo xtask demo` records."""

import json
import re


def threatened(column, columns):
    row = len(columns)
    return any(
        other == column or abs(other - column) == row - index
        for index, other in enumerate(columns)
    )


def place(size, columns):
    if len(columns) == size:
        yield columns
        return
    for column in range(size):
        if not threatened(column, columns):
            yield from place(size, columns + (column,))


def describe(solutions):
    text = json.dumps([list(solution) for solution in solutions] * 60)
    numbers = re.findall(r"\d+", text)
    return sorted(numbers, key=lambda number: (int(number) * 7919) % 10007)


def main():
    for _ in range(20):
        solutions = list(place(9, ()))
        describe(solutions)
    print(f"{len(solutions)} ways to place 9 queens")


if __name__ == "__main__":
    main()
