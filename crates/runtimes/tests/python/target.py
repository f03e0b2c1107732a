"""Says where its threads are, in deep and in mixed stacks, and waits there."""

import functools
import json
import os
import sys
import threading

WRITING = threading.Lock()


def stack(frame):
    frames = []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        frames.append([name, code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return frames


def report(frames):
    thread = [threading.get_ident(), threading.get_native_id(), frames]
    line = (json.dumps(thread) + "\n").encode()
    with WRITING:
        while line:
            line = line[os.write(1, line) :]
    return 0


def stop():
    # One line, so that it is the same one while it waits.
    os.read(report(stack(sys._getframe())), 1)


class Outer:
    class Inner:
        def method(self, depth):
            if depth:
                return self.method(depth - 1)
            return [stop() for _ in range(1)]

    @staticmethod
    def übergabe(depth):
        return Outer.Inner().method(
            depth,
        )


def generate(depth):
    # A call in the middle of a statement of several lines.
    yield (
        1,
        sorted(
            [1],
            key=lambda _: Outer.übergabe(depth),
        ),
    )


def numbers(depth):
    yield from generate(depth)


def thread():
    functools.reduce(lambda *_: list(numbers(10)), [1, 2])


sys.setrecursionlimit(10_000)
threading.Thread(target=thread, daemon=True).start()
for _ in numbers(2_000):
    pass
