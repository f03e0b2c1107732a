"""What calls Python functions in other ways than a call: python_kinds.py KIND [ROUNDS]."""
import asyncio
import os
import subprocess
import sys
import threading

ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 150


def spin(rounds=20000):
    total = 0
    for number in range(rounds):
        total += number * number
    return total


def produce():
    for _ in range(ROUNDS):
        yield spin()


def consume():
    return sum(produce())


async def step():
    spin()
    await asyncio.sleep(0)


async def serve():
    for _ in range(ROUNDS):
        await step()


def key(number):
    return spin()


def order():
    return sorted(range(ROUNDS), key=key)


def down(depth):
    if depth:
        return down(depth - 1)
    for _ in range(ROUNDS):
        spin()


def recursion():
    sys.setrecursionlimit(10000)
    threading.stack_size(64 << 20)
    thread = threading.Thread(target=down, args=(5000,))
    thread.start()
    thread.join()


def fork():
    child = os.fork()
    if child == 0:
        order()
        os._exit(0)
    os.waitpid(child, 0)


def execute():
    subprocess.run([sys.executable, __file__, "callback", str(ROUNDS)], check=True)


INNER = """
def in_the_subinterpreter(rounds):
    for _ in range(rounds):
        total = 0
        for number in range(20000):
            total += number * number
in_the_subinterpreter({})
"""


def outer():
    try:
        import _interpreters as interpreters

        interpreters.exec(interpreters.create(), INNER.format(ROUNDS))
    except ImportError:
        import _xxsubinterpreters as interpreters

        interpreters.run_string(interpreters.create(), INNER.format(ROUNDS))


KINDS = {
    "generator": consume,
    "coroutine": lambda: asyncio.run(serve()),
    "callback": order,
    "recursion": recursion,
    "fork": fork,
    "exec": execute,
    "subinterpreter": outer,
}
KINDS[sys.argv[1]]()
