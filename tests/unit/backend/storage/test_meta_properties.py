"""meta.properties: whose directory it is."""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.storage.errors import CorruptFile, WrongDirectory
from backend.storage.memory_disk import MemoryDisk
from backend.storage.meta_properties import (
    FILE_NAME,
    MetaProperties,
    claim,
    load_meta_properties,
    random_directory_id,
    save_meta_properties,
)

KAFKA = (
    b"#\n#Mon Nov 30 18:19:48 UTC 2026\nnode.id=1\ndirectory.id=MrR-epGN8ZN5s5BBwydPsw\n"
    b"version=1\ncluster.id=XBioLPgPSWea1K7YbT32lQ\n"
)


def holding(content: bytes) -> MemoryDisk:
    disk = MemoryDisk("data")
    disk.open(FILE_NAME, create=True).write(0, content)
    return disk


def test_what_kafka_wrote_is_read() -> None:
    assert load_meta_properties(holding(KAFKA)) == MetaProperties(
        cluster_id="XBioLPgPSWea1K7YbT32lQ", node_id=1, directory_id="MrR-epGN8ZN5s5BBwydPsw"
    )


def test_the_syntax_of_java_is_read() -> None:
    content = b"! a note\r\n  version : 1\ncluster.id  a\\u00e9\\=\\tb\nnode.id\\=x=3\nnode.id=7\ndirectory.id=\\ d\n"
    assert load_meta_properties(holding(content)) == MetaProperties(
        cluster_id="a\u00e9=\tb", node_id=7, directory_id=" d"
    )


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_cluster_id_comes_back(cluster_id: str) -> None:
    disk = MemoryDisk()
    properties = MetaProperties(cluster_id=cluster_id, node_id=3, directory_id=random_directory_id())
    save_meta_properties(disk, properties)
    assert load_meta_properties(disk) == properties


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "version is not 1"),
        (KAFKA.replace(b"version=1", b"version=0"), "version is not 1"),
        (KAFKA.replace(b"cluster.id", b"cluster.ie"), "cluster.id is missing"),
        (KAFKA.replace(b"node.id=1", b"node.id="), "node.id is missing"),
        (KAFKA.replace(b"node.id=1", b"node.id=one"), "node.id is no number"),
        (KAFKA.replace(b"directory.id", b"#directory.id"), "directory.id is missing"),
    ],
)
def test_what_nobody_wrote_is_named(content: bytes, complaint: str) -> None:
    with pytest.raises(CorruptFile, match=rf"data/meta\.properties is damaged at byte 0: {re.escape(complaint)}"):
        load_meta_properties(holding(content))


def test_a_new_directory_is_claimed_once() -> None:
    disk = MemoryDisk()
    first = claim(disk, cluster_id="c", node_id=1, is_new=True)
    disk.crash()
    assert claim(disk, cluster_id="c", node_id=1, is_new=False) == first


def test_another_cluster_or_node_is_refused() -> None:
    disk = MemoryDisk("data")
    claim(disk, cluster_id="c", node_id=1, is_new=True)
    for cluster_id, node_id in (("d", 1), ("c", 2)):
        with pytest.raises(WrongDirectory) as caught:
            claim(disk, cluster_id=cluster_id, node_id=node_id, is_new=False)
        assert str(caught.value) == (
            f"data/meta.properties is that of node 1 of cluster c, not of node {node_id} of cluster {cluster_id}. "
            "Correct cluster_id or the node's id, or point data_dir elsewhere."
        )


def test_a_log_without_an_owner_is_refused() -> None:
    with pytest.raises(WrongDirectory, match="is missing, though the directory has a log"):
        claim(MemoryDisk(), cluster_id="c", node_id=1, is_new=False)


def test_directory_ids_are_as_kafka_wants_them() -> None:
    ids = {random_directory_id() for _ in range(200)}
    assert len(ids) == 200
    for text in ids:
        assert len(base64.urlsafe_b64decode(text + "==")) == 16
        assert not text.startswith("-")
