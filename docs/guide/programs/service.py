"""Answers requests in a thread pool, for a few seconds."""
import concurrent.futures
import hashlib
import time


def handle(request):
    return hashlib.sha256(str(request).encode() * 200000).hexdigest()


end = time.monotonic() + 4
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    while time.monotonic() < end:
        list(pool.map(handle, range(8)))
