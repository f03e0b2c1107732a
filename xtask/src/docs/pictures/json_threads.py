"""Two threads that read and write JSON, and wait for each other: json_threads.py SECONDS"""
import json, sys, threading, time

records = [{"id": i, "name": f"record {i}", "values": [i * j / 7 for j in range(40)]} for i in range(300)]
end = time.monotonic() + float(sys.argv[1])


def write():
    while time.monotonic() < end:
        json.dumps(records, indent=1, sort_keys=True)


def read():
    text = json.dumps(records)
    while time.monotonic() < end:
        sum(sum(record["values"]) for record in json.loads(text))


threads = [threading.Thread(target=write), threading.Thread(target=read)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
