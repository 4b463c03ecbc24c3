"""What RTL says, whoever laid it out: the content of a design apart from comments, layout and the name of its top."""

from __future__ import annotations

import re

from sim.design import Design
from sim.identity import content_id

_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_DEFINE = re.compile(r"`define\b[^\n\\]*(?:\\.[^\n\\]*)*\n?", re.DOTALL)
_OPERATOR = (
    r"<<<=|>>>=|===|!==|==\?|!=\?|<<<|>>>|<<=|>>=|<->|->>|&&&|\|->|\|=>"
    r"|[-+*/%&|^<>=!]=|&&|\|\||\*\*|<<|>>|->|=>|\+\+|--|~\^|\^~|~&|~\||::|\+:|-:|##"
)
_TOKEN = re.compile(rf"{_STRING}|\\[^\s]+|[$`\w][\w$]*|{_OPERATOR}|[^\s]", re.DOTALL)


def without_comments(text: str) -> str:
    """The text with a blank for every comment. What looks like one inside a string stays; an open block comment
    reaches to the end."""
    return _COMMENT.sub(lambda match: match[1] or " ", text)


def canonical_tokens(text: str, top: str = "") -> list[str]:
    """The tokens of RTL (IEEE 1800-2017 section 5): the same for texts that differ in comments, white space and line
    endings only. The end of a `define is a token, since line breaks count there; `top` is called TOP."""
    plain = without_comments(text.replace("\r\n", "\n").replace("\r", "\n"))
    tokens: list[str] = []
    at = 0
    for define in _DEFINE.finditer(plain):
        tokens += [*_TOKEN.findall(plain[at : define.start()]), *_TOKEN.findall(define[0].replace("\\\n", " ")), "\n"]
        at = define.end()
    tokens += _TOKEN.findall(plain[at:])
    return ["TOP" if t == top or t == f"\\{top}" else t for t in tokens] if top else tokens


def canonical_file(text: str, top: str = "") -> str:
    """Identity of a file's RTL apart from comments, white space, line endings and the name of the design's top module;
    empty when it has none."""
    tokens = canonical_tokens(text, top)
    return content_id(tokens) if tokens else ""


def canonical_content(design: Design) -> str:
    """Identity of the RTL apart from comments, white space, line endings, the name of the top module, and the names
    and order of the files. Macros and parameters that are set from outside count."""
    files = {canonical_file(f.text, design.top) for f in (*design.sources, *design.includes)}
    return content_id("canonical", sorted(files - {""}), sorted(design.defines), sorted(design.parameters))
