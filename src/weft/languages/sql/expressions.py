"""SQL expressions: from words to syntax, by precedence."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from weft.languages.limits import require_digits
from weft.languages.sql import constants, syntax
from weft.languages.sql.reading import COMPARISONS, WordReader
from weft.languages.sql.words import SqlWord, partner, unquoted, word_set
from weft.source import SourceText, Span

MOST_DECIMAL_DIGITS = 38  # as in Spark
_MODES = ("RUNNING", "FINAL")
# Words that are part of an expression's syntax, so that they are no column unless quoted.
RESERVED = word_set(
    "AND OR NOT IS NULL IN BETWEEN LIKE ILIKE RLIKE CASE WHEN THEN ELSE END CAST AS TRUE FALSE DISTINCT FROM SELECT "
    "EXISTS WHERE ESCAPE"
)


def parse_expression(source: SourceText, span: Span) -> syntax.SqlExpression:
    """The syntax of an expression that is part of a text; raises ProgramError at the first place that is wrong."""
    parser = _ExpressionParser(source, span)
    expression = parser.expression()
    parser.require_end()
    return expression


class _ExpressionParser(WordReader):
    """Makes syntax of the words of one expression, by precedence."""

    # ---------------------------------------------------------------- precedence

    def expression(self) -> syntax.SqlExpression:
        """An expression, from the operator that binds least."""
        return self._chain("or", "OR", lambda: self._chain("and", "AND", self._negation))

    def _chain(self, operator: str, word: str, read: Callable[[], syntax.SqlExpression]) -> syntax.SqlExpression:
        parts = [read()]
        while self._taken(word):
            parts.append(read())
        if len(parts) == 1:
            return parts[0]
        return syntax.Operation(operator, tuple(parts), span=self._from(parts[0].span))

    def _negation(self) -> syntax.SqlExpression:
        word = self._here()
        if word is not None and word.says("NOT"):
            self._take()
            operand = self._negation()
            return syntax.Operation("not", (operand,), span=self._from(word.span))
        return self._predicate()

    def _predicate(self) -> syntax.SqlExpression:
        left = self._sum()
        while True:
            word = self._here()
            if word is None:
                return left
            if word.text in COMPARISONS:
                if isinstance(left, syntax.Operation) and left.operator in COMPARISONS.values() and not self._grouped:
                    hint = "compare twice: low < x AND x < high"
                    raise self._wrong("comparisons cannot be chained", word.span, hint)
                self._take()
                left = self._operation(COMPARISONS[word.text], left, self._sum())
            elif word.text == "<=>":
                self._take()
                left = self._negated(self._operation("is distinct from", left, self._sum()))
            elif word.says("IS"):
                self._take()
                left = self._is(left)
            elif word.says("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE") or (
                word.says("NOT") and self._says("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", ahead=1)
            ):
                left = self._range(left)
            else:
                return left
            self._grouped = False

    _grouped = False  # whether the operand read last stood in parentheses

    def _operation(self, operator: str, *operands: syntax.SqlExpression) -> syntax.Operation:
        return syntax.Operation(operator, operands, span=self._from(operands[0].span))

    def _negated(self, operand: syntax.SqlExpression, is_negated: bool = True) -> syntax.SqlExpression:
        return syntax.Operation("not", (operand,), span=operand.span) if is_negated else operand

    def _is(self, left: syntax.SqlExpression) -> syntax.SqlExpression:
        is_not = self._taken("NOT")
        if self._taken("NULL", "UNKNOWN"):
            return self._negated(self._operation("is null", left), is_not)
        if self._taken("TRUE"):
            return self._negated(self._operation("is true", left), is_not)
        if self._taken("FALSE"):
            return self._negated(self._operation("is false", left), is_not)
        if self._taken("DISTINCT"):
            self._expect("FROM")
            return self._negated(self._operation("is distinct from", left, self._sum()), is_not)
        word = self._here()
        place = word.span if word is not None else self._end
        raise self._wrong("after IS comes NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM", place, "to compare, write =")

    def _range(self, left: syntax.SqlExpression) -> syntax.SqlExpression:
        is_not = self._taken("NOT")
        if self._taken("BETWEEN"):
            low = self._sum()
            self._expect("AND", "write x BETWEEN low AND high")
            high = self._sum()
            above, below = self._operation(">=", left, low), self._operation("<=", left, high)
            return self._negated(self._operation("and", above, below), is_not)
        if self._taken("IN"):
            return self._negated(self._operation("in", left, *self._members()), is_not)
        word = self._take()  # LIKE, ILIKE, RLIKE
        operands = [left, self._sum()]
        if self._taken("ESCAPE"):
            operands.append(self._sum())
        return self._negated(self._operation(word.upper.lower(), *operands), is_not)

    def _members(self) -> list[syntax.SqlExpression]:
        self._expect("(", "IN is followed by a list: x IN (1, 2)")
        if self._says("SELECT", "WITH"):
            return [self._constant_query()]
        members = [self.expression()]
        while self._taken(","):
            members.append(self.expression())
        self._expect(")")
        return members

    def _sum(self) -> syntax.SqlExpression:
        left = self._product()
        while (word := self._here()) is not None and word.text in ("+", "-", "||"):
            self._take()
            left = self._operation(word.text, left, self._product())
        return left

    def _product(self) -> syntax.SqlExpression:
        left = self._unary()
        while (word := self._here()) is not None and (word.text in ("*", "/", "%") or word.says("DIV")):
            self._take()
            left = self._operation(word.text.lower(), left, self._unary())
        return left

    def _unary(self) -> syntax.SqlExpression:
        word = self._here()
        if word is None or word.text not in ("-", "+"):
            return self._postfix()
        self._take()
        operand = self._unary()
        if word.text == "+":
            return operand
        if isinstance(operand, syntax.SqlLiteral) and isinstance(operand.value, int | float | Decimal):
            return syntax.SqlLiteral(-operand.value, operand.kind, span=self._from(word.span))
        return syntax.Operation("negate", (operand,), span=self._from(word.span))

    def _postfix(self) -> syntax.SqlExpression:
        value = self._primary()
        while True:
            if self._taken("::"):
                value = syntax.CastExpression(value, self._type(), span=self._from(value.span))
            elif self._taken("["):
                index = self.expression()
                self._expect("]")
                value = self._operation("[]", value, index)
            else:
                return value

    # ---------------------------------------------------------------- values

    def _primary(self) -> syntax.SqlExpression:
        self._grouped = False
        word = self._take()
        if word.kind == "number":
            return syntax.SqlLiteral(*self._number(word), span=word.span)
        if word.kind == "string":
            return syntax.SqlLiteral(word.text[1:-1].replace("''", "'"), span=word.span)
        if word.text == "(":
            return self._group(word)
        if word.kind != "name":
            hint = "write NULL, a column, a constant or a function"
            if word.text == "*":
                hint = "only COUNT takes *: COUNT(*), COUNT(A.*)"
            elif word.text == "?":
                hint = "parameters have no value here: write the constant"
            raise self._wrong(f"a value is missing before {word.text!r}", word.span, hint)
        return self._named(word)

    def _number(self, word: SqlWord) -> tuple[int | float | Decimal, str]:
        require_digits(word.text, word.span)
        value = constants.number(word.text)
        if value is None:
            raise self._wrong(f"{word.text!r} is not a number", word.span, "names begin with a letter, or are quoted")
        if isinstance(value[0], Decimal) and len(value[0].as_tuple().digits) > MOST_DECIMAL_DIGITS:
            hint = "write it as a double: 1e40"
            raise self._wrong(f"a decimal has at most {MOST_DECIMAL_DIGITS} digits", word.span, hint)
        return value

    def _group(self, opening: SqlWord) -> syntax.SqlExpression:
        if self._says("SELECT", "WITH"):
            return self._constant_query()
        inner = self.expression()
        if self._says(","):
            hint = "rows of values cannot be compared here: compare column by column"
            raise self._wrong("a row of values is not expected here", self._take().span, hint)
        self._expect(")", "a parenthesis is never closed")
        self._grouped = True
        return inner

    def _constant_query(self) -> syntax.SqlExpression:
        """`SELECT constant)`: a query over no table is its value."""
        start = self._take()
        depth = 0
        for index in range(self._at, len(self._words)):
            depth += (self._words[index].text == "(") - (self._words[index].text == ")")
            if depth == 0 and self._words[index].says("FROM", "JOIN", "TABLE", "VALUES"):
                place = start.span.to(self._words[index].span)
                hint = "join the table before the clause, and read its columns here"
                message = "a query over a table cannot stand in DEFINE or MEASURES"
                raise self._wrong(message, place, hint, "subquery")
            if depth < 0:
                break
        value = self.expression()
        self._taken("AS")
        if self._here() is not None and not self._says(")"):
            self._take()
        self._expect(")")
        return value

    def _named(self, word: SqlWord) -> syntax.SqlExpression:
        upper = word.upper
        is_call = self._says("(")
        if upper in ("TRUE", "FALSE"):
            return syntax.SqlLiteral(upper == "TRUE", span=word.span)
        if upper == "NULL":
            return syntax.SqlLiteral(None, span=word.span)
        if upper == "CASE":
            return self._case(word)
        if upper in ("CAST", "TRY_CAST") and is_call:
            return self._cast(word)
        if upper == "EXISTS" and is_call:
            self._take()
            self._constant_query()
            return syntax.SqlLiteral(True, span=self._from(word.span))
        if upper == "ARRAY" and self._says("["):
            return self._array(word)
        if upper in constants.TYPED and (here := self._here()) is not None and here.kind in ("string", "number"):
            return self._typed_literal(word)
        if upper in _MODES and (here := self._here()) is not None and here.kind == "name":
            return self._in_mode(word)
        if upper == "EXTRACT" and is_call:
            return self._extract(word)
        if is_call:
            return self._call(word, "")
        if upper in RESERVED:
            raise self._wrong(f"a value is missing before {word.text!r}", word.span, "a column of this name is quoted")
        return self._column(word)

    def _column(self, word: SqlWord) -> syntax.SqlExpression:
        parts = [_identifier(word)]
        while self._says("."):
            self._take()
            if self._says("*"):
                self._take()
                return syntax.AllRows(parts[0], span=self._from(word.span))
            part = self._take()
            if part.kind != "name":
                raise self._wrong("after a dot comes the name of a column", part.span, "write A.price")
            parts.append(_identifier(part))
            if self._says("("):
                hint = f"write {part.text}({unquoted(word.text)}.column)"
                raise self._wrong("a function is not called on a variable", part.span, hint)
        return syntax.ColumnName(tuple(parts), span=self._from(word.span))

    def _typed_literal(self, word: SqlWord) -> syntax.SqlExpression:
        """`DATE '…'`, `TIMESTAMP '…'`, `INTERVAL '…' UNIT`."""
        text = self._take()
        value = text.text[1:-1].replace("''", "'") if text.kind == "string" else text.text
        units: list[str] = []
        if word.upper == "INTERVAL":
            while (here := self._here()) is not None and here.upper.rstrip("S") in constants.UNITS:
                units.append(self._take().upper)
                if self._taken("("):  # SECOND(3)
                    self._take()
                    self._expect(")")
                if not self._taken("TO"):
                    break
        found = constants.typed(word.upper, value, units)
        if found is None:
            hint = constants.EXAMPLES[word.upper]
            raise self._wrong(f"this is no {word.upper.lower()}", self._from(word.span), f"write {hint}")
        return syntax.SqlLiteral(*found, span=self._from(word.span))

    def _in_mode(self, word: SqlWord) -> syntax.SqlExpression:
        name = self._take()
        if not self._says("("):
            hint = f"write {word.upper} LAST({name.text})"
            raise self._wrong(f"{word.upper} is followed by FIRST, LAST or an aggregate", word.span, hint)
        return self._call(name, word.upper, word.span)

    def _call(self, word: SqlWord, mode: str, start: Span | None = None) -> syntax.SqlExpression:
        self._expect("(")
        distinct = self._taken("DISTINCT")
        self._taken("ALL")
        arguments: list[syntax.SqlExpression] = []
        while not self._says(")"):
            if self._says("*"):
                arguments.append(syntax.AllRows(span=self._take().span))
            else:
                arguments.append(self.expression())
            if self._says("ORDER"):
                hint = "rows are aggregated in the order of the match"
                raise self._wrong("ORDER BY cannot stand inside an aggregate here", self._take().span, hint)
            if not self._taken(","):
                break
        if self._here() is None:
            hint = f"close the parenthesis of {word.text} with ')'"
            raise self._wrong(f"the parenthesis of {word.text} is never closed", word.span, hint)
        self._expect(")", "arguments are separated by commas")
        self._refuse_after_call()
        call = _identifier(word)
        return syntax.FunctionCall(call, tuple(arguments), distinct, mode, span=self._from(start or word.span))

    def _refuse_after_call(self) -> None:
        if self._says("OVER", "WITHIN", "FILTER") and self._says("(", "GROUP", ahead=1):
            self.require_end()

    def _array(self, word: SqlWord) -> syntax.SqlExpression:
        self._expect("[")
        items: list[syntax.SqlExpression] = []
        while not self._says("]"):
            items.append(self.expression())
            if not self._taken(","):
                break
        self._expect("]")
        return syntax.Operation("array", tuple(items), span=self._from(word.span))

    def _extract(self, word: SqlWord) -> syntax.SqlExpression:
        self._expect("(")
        unit = self._take()
        self._expect("FROM", "write EXTRACT(HOUR FROM ts)")
        value = self.expression()
        self._expect(")")
        name = syntax.Identifier(unit.text.lower(), span=unit.span)
        return syntax.FunctionCall(name, (value,), span=self._from(word.span))

    def _case(self, word: SqlWord) -> syntax.SqlExpression:
        operand = None if self._says("WHEN") else self.expression()
        branches: list[syntax.Branch] = []
        while self._says("WHEN"):
            start = self._take()
            condition = self.expression()
            self._expect("THEN")
            value = self.expression()
            branches.append(syntax.Branch(condition, value, span=self._from(start.span)))
        otherwise = self.expression() if self._taken("ELSE") else None
        if not branches:
            raise self._wrong("CASE has no WHEN", word.span, "write CASE WHEN condition THEN value ELSE value END")
        self._expect("END", "a CASE is closed with END")
        return syntax.CaseExpression(operand, tuple(branches), otherwise, span=self._from(word.span))

    def _cast(self, word: SqlWord) -> syntax.SqlExpression:
        self._expect("(")
        value = self.expression()
        self._expect("AS", "write CAST(x AS double)")
        type_ = self._type()
        self._expect(")")
        return syntax.CastExpression(value, type_, word.upper == "TRY_CAST", span=self._from(word.span))

    def _type(self) -> str:
        """Parse the name of a type, with its arguments in parentheses."""
        first = self._take()
        if first.kind != "name":
            raise self._wrong(f"{first.text!r} is not a type", first.span, "write CAST(x AS double)")
        end = self._at
        while end < len(self._words) and self._words[end].says("PRECISION", "WITH", "WITHOUT", "LOCAL", "TIME", "ZONE"):
            end += 1
        if end < len(self._words) and self._words[end].text == "(":
            closing = partner(self._words, end)
            end = end + 1 if closing is None else closing + 1
        elif end < len(self._words) and self._words[end].text == "<":
            depth = 0
            while end < len(self._words):
                depth += (self._words[end].text == "<") - (self._words[end].text == ">")
                end += 1
                if depth == 0:
                    break
        words = [first.text, *(word.text for word in self._words[self._at : end])]
        self._at = end
        return constants.type_name(words)


def _identifier(word: SqlWord) -> syntax.Identifier:
    return syntax.Identifier(unquoted(word.text), word.quoted, span=word.span)
