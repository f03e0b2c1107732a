"""Runs a program on a terminal of its own, and writes what its screen shows as a page:
terminal.py PAGE STEPS COMMAND...     STEPS, one on a line: `see TEXT` waits until the screen shows
                                      it, `type KEYS` types, `wait SECONDS` waits. The last key
                                      should end the program: the page is written before the last step.
"""
import codecs, fcntl, html, os, re, select, struct, sys, termios, time

WIDTH, HEIGHT = 110, 30
PAGE, STEPS, COMMAND = sys.argv[1], sys.argv[2].splitlines(), sys.argv[3:]
# The 16 colours of xterm, a little softer.
COLORS = "000000 cd3131 0dbc79 c8b32d 3b8eea bc3fbc 11a8cd d0d0d0 666666 f48771 5fd08f f5e56b 6cb6ff d670d6 55d0e8 ffffff".split()
TOKEN = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|([^\x1b])")

pid, master = os.forkpty()
if pid == 0:
    os.environ.update(TERM="xterm-256color", LANG="C.UTF-8")
    os.environ.pop("NO_COLOR", None)
    os.execvp(COMMAND[0], COMMAND)
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
blank = lambda: [[(" ", {})] * WIDTH for _ in range(HEIGHT)]
screen, row, column, style, rest = blank(), 0, 0, {}, ""
text = codecs.getincrementaldecoder("utf-8")()


def select_style(parameters):
    """SGR: the style of what comes next."""
    global style
    codes = [int(code or 0) for code in parameters.split(";")]
    style = dict(style)
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = {}
        elif code in (38, 48) and codes[:1] == [5]:
            style["color" if code == 38 else "background"] = COLORS[codes[1] % 16]
            codes = codes[2:]
        elif 30 <= code <= 37:
            style["color"] = COLORS[code - 30]
        elif 40 <= code <= 47:
            style["background"] = COLORS[code - 40]
        elif code in (1, 4, 7):
            style[{1: "bold", 4: "underline", 7: "reverse"}[code]] = True
        for ended, names in ((22, ["bold"]), (24, ["underline"]), (27, ["reverse"]), (39, ["color"]), (49, ["background"])):
            if code == ended:
                style.pop(names[0], None)


def read(timeout):
    """Follows what is written to the terminal; whether anything was."""
    global screen, row, column, rest
    if not select.select([master], [], [], timeout)[0]:
        return False
    rest += text.decode(os.read(master, 65536))
    while token := TOKEN.match(rest):
        rest = rest[token.end():]
        parameters, command, character = token.groups()
        if command == "H":
            row, column = [int(number) - 1 for number in (parameters or "1;1").split(";")]
        elif command == "J":
            screen = blank()
        elif command == "m":
            select_style(parameters)
        elif character and character >= " " and row < HEIGHT and column < WIDTH:
            screen[row][column] = (character, style)
            column += 1
    return True


def cell(character, style):
    color, background = style.get("color", "d8dce2"), style.get("background", "15181d")
    if style.get("reverse"):
        color, background = background, color
    css = f"color:#{color};background:#{background}"
    css += ";font-weight:bold" if style.get("bold") else ""
    css += ";text-decoration:underline" if style.get("underline") else ""
    return f'<span style="{css}">{html.escape(character)}</span>'


def write_page():
    lines = "\n".join("".join(cell(*one) for one in line) for line in screen)
    css = "body{margin:0;background:#15181d}pre{display:inline-block;margin:8px;font:14px/18px 'DejaVu Sans Mono',monospace}"
    with open(PAGE, "w") as page:
        page.write(f"<!DOCTYPE html><meta charset=utf-8><style>{css}</style><pre>{lines}</pre>")


for number, step in enumerate(STEPS):
    if number == len(STEPS) - 1:
        write_page()
    what, _, wanted = step.partition(" ")
    if what == "see":
        while all(wanted not in "".join(character for character, _ in line) for line in screen):
            if not read(60):
                sys.exit(f"nothing shows {wanted!r}")
    elif what == "wait":
        end = time.monotonic() + float(wanted)
        while (left := end - time.monotonic()) > 0:
            read(left)
    else:
        os.write(master, wanted.encode().decode("unicode_escape").encode())
while True:
    try:
        read(60)
    except OSError:
        break
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
