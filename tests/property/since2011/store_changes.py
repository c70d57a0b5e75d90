"""Random changes to a metadata store beside a model that is too simple to be wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from since2011.topics.errors import TopicError
from since2011.topics.image import ClusterImage
from since2011.topics.store import MetadataStore

NAMES = ["a", "b", "c.d", "__consumer_offsets"]
ENTITIES = ["topics/a", "brokers/1", "brokers/<default>", "users/u%40x/clients/c", "clients/c"]


@dataclass
class Model:
    """Topics with the brokers of their partitions, settings, the next producer id."""

    topics: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    ids: dict[str, object] = field(default_factory=dict)
    next_producer_id: int = 0

    def agrees(self, image: ClusterImage) -> None:
        """The image shows the model, and is whole in itself."""
        assert {name: [p.replicas for p in topic.partitions] for name, topic in image.topics.items()} == self.topics
        assert {entity: dict(settings) for entity, settings in image.configs.items()} == {
            entity: settings for entity, settings in self.configs.items() if settings
        }
        assert {name: topic.topic_id for name, topic in image.topics.items()} == self.ids
        assert {image.names[topic_id] for topic_id in image.names} == set(self.topics)
        for topic in image.topics.values():
            for partition in topic.partitions:
                assert partition.leader == partition.replicas[0]
                assert (partition.leader_epoch, partition.isr) == (0, partition.replicas)


def step(store: MetadataStore, model: Model, random: Random) -> None:
    """One random change to both; what the model forbids the store must refuse with the right error."""
    name = random.choice(NAMES)
    match random.randrange(6):
        case 0 | 1:
            n = random.randint(1, 4)
            rows = {index: tuple(random.sample((1, 2, 3), random.randint(1, 3))) for index in range(n)}
            settings = {"retention.ms": str(random.randrange(9))} if random.random() < 0.5 else {}
            refused = _code(lambda: store.create_topic(name, rows, settings))
            assert refused == (36 if name in model.topics else None)
            if refused is None:
                model.topics[name] = [rows[index] for index in sorted(rows)]
                model.configs[f"topics/{name}"] = settings
                model.ids[name] = store.image.topics[name].topic_id
        case 2:
            refused = _code(lambda: store.delete_topic(name))
            assert refused == (None if name in model.topics else 3)
            for table in (model.topics, model.ids):
                table.pop(name, None)  # type: ignore[attr-defined]
            if refused is None:
                model.configs.pop(f"topics/{name}", None)
        case 3:
            n = len(model.topics.get(name, ())) + random.choice((0, 0, 1))
            refused = _code(lambda: store.add_partitions(name, {n: (2,), n + 1: (1, 2)}))
            if name not in model.topics:
                assert refused == 3
            elif n != len(model.topics[name]):
                assert refused == 37
            else:
                assert refused is None
                model.topics[name] += [(2,), (1, 2)]
        case 4:
            entity, setting = random.choice(ENTITIES), random.choice("xy")
            value = random.choice(["1", "ä", None])

            def change(settings: dict[str, str]) -> dict[str, str]:
                settings.pop(setting, None)
                return settings if value is None else {**settings, setting: value}

            store.alter_config(entity, change)
            model.configs[entity] = change(dict(model.configs.get(entity, {})))
        case _:
            least = random.choice((0, 0, 7_000))
            block = store.take_producer_ids(least)
            assert len(block) == 1000
            assert block.start == max(least, model.next_producer_id)
            model.next_producer_id = block.stop


def _code(call: Any) -> int | None:
    try:
        call()
    except TopicError as error:
        return error.code
    return None
