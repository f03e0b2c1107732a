"""A shop that packs its orders as JSON and adds up the sales, in two threads: shop.py SECONDS"""
import json
import queue
import re
import sys
import threading
import time
import zlib

ORDERS = [
    {"id": i, "buyer": f"buyer {i % 70}", "items": [{"name": f"item {j}", "price": i * j / 7} for j in range(30)]}
    for i in range(400)
]
END = time.monotonic() + float(sys.argv[1])
parcels = queue.Queue(maxsize=4)


def pack(orders):
    return zlib.compress(json.dumps(orders, sort_keys=True).encode())


def unpack(parcel):
    return json.loads(zlib.decompress(parcel))


def buyer_number(order):
    return int(re.search(r"\d+", order["buyer"]).group())


def prices(order):
    return [item["price"] for item in order["items"]]


def total(orders):
    return sum(sum(prices(order)) for order in sorted(orders, key=buyer_number))


def pack_orders():
    while time.monotonic() < END:
        parcels.put(pack(ORDERS))
    parcels.put(None)


def count_sales():
    while parcel := parcels.get():
        total(unpack(parcel))


threads = [threading.Thread(target=pack_orders), threading.Thread(target=count_sales)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
