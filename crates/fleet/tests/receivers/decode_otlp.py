"""Decodes a gzipped ExportProfilesServiceRequest; prints what is in it as JSON."""

import collections
import gzip
import json
import sys

from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2

request = profiles_service_pb2.ExportProfilesServiceRequest()
with open(sys.argv[1], "rb") as body:
    request.ParseFromString(gzip.decompress(body.read()))

tables = request.dictionary
strings = tables.string_table
empty = {
    "mapping": tables.mapping_table[0],
    "location": tables.location_table[0],
    "function": tables.function_table[0],
    "link": tables.link_table[0],
    "attribute": tables.attribute_table[0],
    "stack": tables.stack_table[0],
}
for name, entry in empty.items():
    assert entry == type(entry)(), f"the first {name} is not empty"
assert strings[0] == ""

(resource,) = request.resource_profiles
(scope,) = resource.scope_profiles
(profile,) = scope.profiles
assert len(profile.profile_id) == 16 and any(profile.profile_id)

functions = collections.Counter()
threads = set()
for sample in profile.samples:
    (value,) = sample.values
    stack = tables.stack_table[sample.stack_index]
    names = set()
    for index in stack.location_indices:
        assert index > 0
        for line in tables.location_table[index].lines:
            names.add(strings[tables.function_table[line.function_index].name_strindex])
    for name in names:
        functions[name] += value
    for index in sample.attribute_indices:
        attribute = tables.attribute_table[index]
        if strings[attribute.key_strindex] == "thread.name":
            threads.add(attribute.value.string_value)

print(
    json.dumps(
        {
            "functions": functions,
            "threads": sorted(threads),
            "type": [
                strings[profile.sample_type.type_strindex],
                strings[profile.sample_type.unit_strindex],
            ],
            "period": profile.period,
            "time": profile.time_unix_nano,
            "resource": {
                attribute.key: attribute.value.string_value
                for attribute in resource.resource.attributes
            },
        }
    )
)
