"""What of the text of a model is its answer, and not its thought."""

from __future__ import annotations

import re

_NAMES = (
    r"(?:\w{1,20}[:|]|longcat_)?(?:ant_?)?(?:think(?:ing|_\w+)?|thoughts?|thought_process|reason(?:ing)?"
    r"|reasoning_scratchpad|scratchpad|analysis|reflection|inner_monologue|chain_of_thought)"
)
_OPEN = re.compile(
    rf"<\|?(?:start_|begin_of_)?{_NAMES}(?:\s[^<>]{{0,80}})?\|?>|\[think(?:ing)?\]|◁think▷"
    r"|<\|inner_prefix\|>|<unused94>(?:thought)?|<\|channel>"
    r"|<\|channel\|>(?:analysis|commentary)|(?-i:\Aanalysis(?=[A-Z]))|<\|im_start\|>think"
    r"|\A\W*here(?:['’]s| is| are) my (?:thought process|reasoning steps):"
    r"|\A\s*thinking\.\.\.|<ctrl94>(?:thought)?",
    re.IGNORECASE,
)
"""The marks before the thought of families of models."""

_CLOSE = re.compile(
    rf"<\|?/{_NAMES}\|?>|<\|?end_(?:of_)?{_NAMES}\|?>|\[/think(?:ing)?\]|◁/think▷"
    r"|<\|inner_suffix\|>|<unused95>|<channel\|>"
    r"|<\|channel\|>final[^<]{0,80}(?:<\|constrain\|>\w*)?<\|message\|>"
    r"|(?-i:assistantfinal(?![a-z]))|<\|im_start\|>answer"
    r"|here(?:['’]s| is) my response:|\.\.\.done thinking\.?|<ctrl95>"
    r"|\[BEGIN FINAL RESPONSE\]|(?:<\|end\|>)?<\|begin\|>assistant(?:<\|content\|>)?",
    re.IGNORECASE,
)
"""The marks after it."""

_ANSWER = re.compile(
    r"<\|?(?:answer|response|solution|output|final|final_answer|start_response"
    r"|begin_of_solution|begin_of_box)\|?>(?=\s*\S)"
    r"|^[^\w\n]{0,9}(?:(?:my|the) )?(?:final )?answer[^\w\n]{0,9}$(?=\s*\S)",
    re.IGNORECASE | re.MULTILINE,
)
"""The marks before an answer."""

_END = re.compile(
    r"<\|?/(?:answer|response|solution|output|final|final_answer)\|?>|<turn\|>"
    r"|<\|(?:im_end|eot_id|eom_id|end_of_text|endoftext|end|return|end_response|end_of_solution"
    r"|end_of_turn|end_of_box)\|>|\[END FINAL RESPONSE\]|</s>|<eos>|<end_of_turn>|<｜end▁of▁sentence｜>|\[/?INST\]",
    re.IGNORECASE,
)
"""The marks after an answer."""

_START = re.compile(r"\A(?:\s|<s>|<bos>|<\|im_start\|>assistant|<\|start\|>assistant|thought\n)+")


_FOLDED = re.compile(
    r"(<details[^<>]*(?:reasoning[^<>]*>|>\s*<summary>[^<>]*(?:think|thought|reason)).*?)</details>",
    re.IGNORECASE | re.DOTALL,
)
"""Thought as Open WebUI and other servers fold it."""

_ESCAPED = re.compile(rf"&lt;(/?{_NAMES})&gt;", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")


def find_answer(text: str) -> str | None:
    r"""Return a text without the thought of the model; None if it ends within its thought.

    Thought stands between two marks; before a closing mark without an opening one; and after an
    opening mark without a closing one, where the answer is missing.

    >>> find_answer("<think>Heat? No.</think>1. Alien"), find_answer("Heat? No.</think>1. Alien")
    ('1. Alien', '1. Alien')
    >>> find_answer("<think>Heat? No") is None
    True
    """
    text = _FOLDED.sub(r"<think>\1</think>", _ESCAPED.sub(r"<\1>", text))
    marks = [(mark.start(), mark.end(), False) for mark in _CLOSE.finditer(text)]
    marks += [(mark.start(), mark.end(), True) for mark in _OPEN.finditer(text)]
    parts: list[str] = []
    start, is_thought = 0, False
    for first, end, is_open in sorted(marks):
        if is_open and not is_thought:
            parts.append(text[start:first])
        elif not is_open and not is_thought:
            parts.clear()
        start, is_thought = end, is_open
    if is_thought:
        return None
    answer = _START.sub("", "".join([*parts, text[start:]]))
    if marked := [*_ANSWER.finditer(answer)]:
        answer = answer[marked[-1].end() :]
    return _BOXED.sub(r"\1", _END.split(answer, maxsplit=1)[0])
