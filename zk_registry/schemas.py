"""Event schemas in ZooKeeper: ``/kafka2011/schemas/<id>`` holds the topic and the Avro schema, as JSON.

Paper: §4 ("a lightweight schema registry service"): here the registry the brokers already use. A node is written once
and never changed, so what was read may be kept.
"""

from __future__ import annotations

import json
from typing import Any

from kafka2011.avro import Schema, SchemaRegistry, UnknownSchema, canonical, check_schema
from zk_registry.operations import Children, ConnectionLoss, Create, Get, NodeExists, NoNode, Registry

SCHEMAS = "/kafka2011/schemas"


class ZooKeeperSchemaRegistry(SchemaRegistry):
    """Schemas by id under one node. Thread: as its registry; any number of processes."""

    def __init__(self, registry: Registry) -> None:
        super().__init__()
        self._registry = registry
        self._known: dict[int, dict[str, Any]] = {}

    def register(self, topic: str, schema: Schema) -> int:
        """Give the schema the next id. Creating the node takes the id; who comes second tries the next one."""
        while True:
            entries = self._entries()
            mine = {number: entry["schema"] for number, entry in entries.items() if entry["topic"] == topic}
            for number, known in mine.items():
                if canonical(known) == canonical(schema):
                    return number
            check_schema(topic, schema, mine)
            number = max(entries, default=0) + 1
            value = json.dumps({"topic": topic, "schema": schema}).encode()
            try:
                self._registry.perform(Create(f"{SCHEMAS}/{number}", value, make_parents=True))
            except (NodeExists, ConnectionLoss):
                # Taken by another, or perhaps made by us: the next look tells, and an equal schema keeps its id.
                continue
            return number

    def schema(self, schema_id: int) -> Schema:
        found: Schema = self._entry(schema_id)["schema"]
        return found

    def ids(self, topic: str) -> list[int]:
        return sorted(number for number, entry in self._entries().items() if entry["topic"] == topic)

    def _entries(self) -> dict[int, dict[str, Any]]:
        try:
            names = self._registry.perform(Children(SCHEMAS))
        except NoNode:
            return {}
        return {int(name): self._entry(int(name)) for name in names if name.isdecimal()}

    def _entry(self, number: int) -> dict[str, Any]:
        if number not in self._known:
            try:
                node = self._registry.perform(Get(f"{SCHEMAS}/{number}"))
            except NoNode:
                raise UnknownSchema(f"no schema has id {number} under {SCHEMAS}") from None
            self._known[number] = json.loads(node.value)
        return self._known[number]
