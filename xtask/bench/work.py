"""work.py KIND COUNT: programs of a length that is chosen, for `cargo xtask bench`.

json COUNT   writes and reads a document COUNT times
idle COUNT   a server without requests, for COUNT milliseconds
busy COUNT   a server that answers COUNT requests of a client of its own
"""

import http.client
import http.server
import json
import sys
import threading
import time


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        body = json.dumps({"path": self.path, "values": list(range(200))}, indent=1).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


def document(depth):
    if depth == 0:
        return {"name": "leaf", "values": list(range(10)), "ratio": 0.25, "none": None}
    return {f"child {number}": document(depth - 1) for number in range(3)}


def main(kind, count):
    if kind == "json":
        written = document(4)
        for _ in range(count):
            written = json.loads(json.dumps(written, indent=1))
        return
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    if kind == "idle":
        time.sleep(count / 1000)
        return
    client = http.client.HTTPConnection(*server.server_address)
    for number in range(count):
        client.request("GET", f"/{number}")
        client.getresponse().read()


main(sys.argv[1], int(sys.argv[2]))
