"""Selection: predicates on one stream as Spark columns, so that Spark evaluates them where the rows are.

Only predicates that can't fail on any row and that Spark evaluates exactly as we do (tests/spark holds it to that); pack evaluates
the others. So the order in which Spark evaluates them does not matter.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from watersmeet.model.expr import (
    And,
    Between,
    Cast,
    Column,
    Compare,
    Expr,
    InList,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    type_of,
    walk,
)  # fmt: skip
from watersmeet.model.types import BIGINT, DOUBLE, INTERVAL, NULL, STRING
from watersmeet.spark.columns import column, spark_type


def in_spark(expr: Expr) -> bool:
    """Whether Spark may evaluate a predicate.

    Not: arithmetic, which can fail; casts but BIGINT to DOUBLE (those of times depend on the session's zone); lists of doubles (NaN and
    -0.0 in them); patterns with escapes; bare constants.
    """
    if not any(isinstance(n, Column) for n in walk(expr)):
        return False
    for node in walk(expr):
        if isinstance(node, Cast) and not (node.type == DOUBLE and type_of(node.operand) == BIGINT):
            return False
        if isinstance(node, InList) and type_of(node.operand) == DOUBLE:
            return False
        if isinstance(node, Like) and ("\\" in node.pattern or type_of(node.operand) != STRING):
            return False
        if isinstance(node, Literal) and (node.type in (INTERVAL, NULL) or node.value is None):
            return False
        if not isinstance(node, Column | Literal | Cast | Compare | Between | InList | Like | IsNull | Not | And | Or):
            return False
    return True


def mask(predicates: tuple[Expr, ...]) -> SparkColumn:
    """Whether all of them are true; never NULL."""
    return F.coalesce(reduce(and_, [spark_column(p) for p in predicates]), F.lit(False))


def spark_column(expr: Expr) -> SparkColumn:
    """A bound expression that `in_spark` allows, as a Spark column over the columns of its one stream."""
    match expr:
        case Column():
            return column(expr.name)
        case Literal():
            return F.lit(expr.value).cast(spark_type(expr.type))
        case Cast():
            return spark_column(expr.operand).cast(spark_type(expr.type))
        case Compare():
            return _compare(expr.op, spark_column(expr.left), spark_column(expr.right))
        case Between():
            operand = spark_column(expr.operand)
            return (operand >= spark_column(expr.low)) & (operand <= spark_column(expr.high))
        case InList():
            operand = spark_column(expr.operand)
            return reduce(or_, [operand == spark_column(item) for item in expr.items])
        case Like():
            return spark_column(expr.operand).like(expr.pattern)
        case IsNull():
            return spark_column(expr.operand).isNull()
        case Not():
            return ~spark_column(expr.operand)
        case And():
            return reduce(and_, [spark_column(i) for i in expr.items])
        case Or():
            return reduce(or_, [spark_column(i) for i in expr.items])
    raise AssertionError(f"not for Spark: {expr}")


def _compare(op: str, left: SparkColumn, right: SparkColumn) -> SparkColumn:
    match op:
        case "=":
            return left == right
        case "<>":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right
