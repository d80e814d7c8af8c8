"""JoinGraph: classes of equal attributes, edges, components."""

from __future__ import annotations

from watersmeet.lang import parse
from watersmeet.model.bind import bind
from watersmeet.model.graph import JoinGraph

COLUMNS = "a BIGINT, b BIGINT, s STRING, d DOUBLE, m DECIMAL(10,2), ts TIMESTAMP"


def graph(where: str, streams: str = "R S T U") -> JoinGraph:
    names = streams.split()
    declared = "".join(f"CREATE STREAM {name} ({COLUMNS}); " for name in names)
    condition = f"WHERE {where}" if where else ""
    text = f"{declared} SELECT 1 AS one FROM {', '.join(f'{n} [ROWS 1]' for n in names)} {condition}"
    return JoinGraph.of(bind(parse(text)))


def classes(made: JoinGraph) -> list[str]:
    return [str(c) for c in made.classes]


def test_graph_takes_equalities_that_share_an_attribute_for_one_class() -> None:
    made = graph("R.a = S.a AND S.a = T.a")
    assert classes(made) == ["R.a = S.a = T.a"]
    assert made.edges == (("R", "S"), ("R", "T"), ("S", "T"))


def test_graph_keeps_classes_apart_that_share_no_attribute() -> None:
    made = graph("R.a = S.a AND S.b = T.b")
    assert classes(made) == ["R.a = S.a", "S.b = T.b"]
    assert made.edges == (("R", "S"), ("S", "T"))


def test_graph_merges_classes_that_meet_later_whatever_the_order() -> None:
    assert classes(graph("R.a = S.a AND T.a = U.a AND S.a = T.a")) == ["R.a = S.a = T.a = U.a"]
    assert classes(graph("T.a = U.a AND S.a = R.a AND U.a = R.a")) == ["R.a = S.a = T.a = U.a"]


def test_graph_members_of_a_class_stand_in_from_order_and_the_first_names_it() -> None:
    made = graph("U.a = S.b AND S.b = R.a")
    assert classes(made) == ["R.a = S.b = U.a"]
    assert made.classes[0].name == "R.a"
    assert made.classes[0].streams == {"R", "S", "U"}
    assert str(made.classes[0].of("S")) == "S.b"
    assert made.classes[0].of("T") is None


def test_graph_two_attributes_of_one_stream_in_a_class_imply_an_equality_within_it() -> None:
    made = graph("R.a = S.a AND S.a = R.b")
    assert classes(made) == ["R.a = S.a"]
    assert [(stream, str(e)) for stream, e in made.implied] == [("R", "R.a = R.b")]


def test_graph_does_not_mix_types_in_a_class() -> None:
    """2^53 + 1 equals 2^53 as DOUBLE, so BIGINT = DOUBLE is not transitive with BIGINT = BIGINT."""
    made = graph("R.a = S.d AND R.a = T.a")
    assert classes(made) == ["CAST(R.a AS DOUBLE) = S.d", "R.a = T.a"]
    assert made.shared("S", "T") == ()


def test_graph_takes_computed_attributes() -> None:
    assert classes(graph("R.a + 1 = S.a AND R.a + 1 = T.b")) == ["R.a + 1 = S.a = T.b"]


def test_graph_comparisons_are_edges_but_no_classes() -> None:
    made = graph("R.a < S.a AND R.a = T.a")
    assert classes(made) == ["R.a = T.a"]
    assert made.edges == (("R", "S"), ("R", "T"))
    assert [str(c) for c in made.between(("S",), ("R", "T"))] == ["R.a < S.a"]
    assert made.between(("S",), ("T",)) == ()


def test_graph_linking_classes_between_sets_of_streams() -> None:
    made = graph("R.a = S.a AND S.b = T.b AND R.b = U.b")
    assert [str(c) for c in made.linking(("R", "S"), ("T", "U"))] == ["S.b = T.b", "R.b = U.b"]
    assert made.linking(("R",), ("T",)) == ()
    assert made.neighbours("S") == {"R", "T"}


def test_graph_components_are_the_parts_of_a_cartesian_product() -> None:
    assert graph("R.a = S.a AND T.a = U.a").components == (frozenset("RS"), frozenset("TU"))
    assert graph("").components == tuple(frozenset(s) for s in "RSTU")
    assert len(graph("R.a = S.a AND T.a = U.a AND R.b + S.b < T.b").components) == 1


def test_graph_connected_looks_at_edges_among_the_given_streams_only() -> None:
    made = graph("R.a = S.a AND S.b = T.b")
    assert made.connected("RST") and made.connected("RS") and made.connected("R")
    assert not made.connected("RT")
    assert not made.connected("RSTU")
