"""What requests and answers have, as JSON: the forms that `/docs` describes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from weft.errors import did_you_mean
from weft.languages import LANGUAGES

MOST_TEXT = 1 << 20  # characters of a program
NAMES = [language.name for language in LANGUAGES]


def _known(language: str | None) -> str | None:
    if language is not None and language.lower() not in NAMES:
        raise ValueError(f"there is no language {language!r}; {did_you_mean(language, NAMES)}")
    return language


LanguageName = Annotated[str | None, AfterValidator(_known), Field(json_schema_extra={"enum": [*NAMES, None]})]


class QueryText(BaseModel):
    """A program: its text, its language (found out if it is not said), and the name of a nameless query."""

    text: str = Field(max_length=MOST_TEXT)
    language: LanguageName = None
    name: str | None = Field(default=None, max_length=200)


class Moment(BaseModel):
    """A time, in ticks."""

    time: int = Field(ge=-(2**63), lt=2**63)


class Rejected(BaseModel):
    """A row that took no part: its number in the body, from 0 on, and why."""

    row: int
    reason: str


class PublishAnswer(BaseModel):
    """What became of the events of a publication."""

    accepted: int
    rejected: list[Rejected] = Field(description="The first thousand.")
    late: int = Field(description="How many of the rejected came too late.")
    more_rejected: int = Field(default=0, description="How many were rejected beyond those that are listed.")
    duplicate: bool = Field(default=False, description="Whether this batch came already: then it is not counted again.")


class Finding(BaseModel):
    """What is wrong with a text, or doubtful."""

    code: str
    severity: str
    message: str
    file: str
    line: int
    column: int
    hint: str | None
    span: tuple[int, int] = Field(description="From and to which character.")


class Deployed(BaseModel):
    """The names of queries that were deployed, and what is doubtful about their text."""

    names: list[str]
    warnings: list[Finding]
    change: str = Field(default="", description="Of a replacement: what keeps its state, and what begins anew.")
    ignored: str = Field(default="", description="What the text names, and the server does not do.")


class Problem(BaseModel):
    """Why a request was refused; programs and conditions have findings."""

    problem: str
    findings: list[Finding]


class RunningQuery(BaseModel):
    """A query that runs."""

    name: str
    matches: int
    text: str = ""
    language: str = ""


def body_of(*kinds: str) -> dict[str, Any]:
    """The description of a body that is read as it comes."""
    return {"requestBody": {"required": True, "content": {kind: {"schema": {"type": "string"}} for kind in kinds}}}
