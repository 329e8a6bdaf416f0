"""Text to token ids and back. Text is only ever text: no spelling of a control token in it becomes one."""

import dataclasses
import json
import re
from collections.abc import Sequence
from pathlib import Path

import jinja2
import tokenizers
from jinja2.sandbox import ImmutableSandboxedEnvironment

from cudal1_jax.policy import gguf, prepared

TOKENIZER, SETTINGS, TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"
SHIELD = "\ue000"  # a private-use character, put into spellings of control tokens while a template is rendered


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """A tokenizer with its chat template. Padding and end-of-turn ids may be equal: carry lengths, not masks of ids."""

    backend: tokenizers.Tokenizer  # with encode_special_tokens on: control tokens in text are split like any text
    template: jinja2.Template
    control: dict[str, int]  # spelling -> id of every control token
    bos_id: int
    eos_id: int  # ends a turn
    pad_id: int

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Ids after which nothing of the answer follows: end of turn, end of text."""
        return tuple(sorted({self.eos_id, self.control.get("<|endoftext|>", self.eos_id)}))

    def encode(self, text: str) -> list[int]:
        """Ids of plain text, such as kernel source or a compiler's output; never a control token."""
        return self.backend.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids; control tokens are left out."""
        return self.backend.decode(list(ids), skip_special_tokens=True)

    def render_chat(self, user: str, system: str | None = None) -> list[int]:
        """Ids of a conversation that awaits the assistant's answer; only the template's own control tokens are control.

        The file's template adds its default system message when `system` is None.
        """
        messages = [] if system is None else [{"role": "system", "content": self._shield(system)}]
        messages.append({"role": "user", "content": self._shield(user)})
        rendered = self.template.render(messages=messages, add_generation_prompt=True)
        ids: list[int] = []
        for piece in self._pattern().split(rendered):
            ids += [self.control[piece]] if piece in self.control else self.encode(self._unshield(piece))
        return ids

    def _pattern(self) -> re.Pattern[str]:
        return re.compile(
            "(" + "|".join(re.escape(token) for token in sorted(self.control, key=len, reverse=True)) + ")"
        )

    def _shield(self, text: str) -> str:
        doubled = text.replace(SHIELD, SHIELD * 2)
        return self._pattern().sub(lambda found: found[0][0] + SHIELD + found[0][1:], doubled)

    def _unshield(self, text: str) -> str:
        return re.sub(f"{SHIELD}({SHIELD})?", lambda found: found[1] or "", text)


def load(path: str | Path | None = None) -> Tokenizer:
    """The tokenizer of a GGUF file, by default the embedded one; the first call prepares the file (see `gguf.load`)."""
    return from_folder(gguf.locate(path))


def from_folder(folder: Path) -> Tokenizer:
    """The tokenizer of a prepared folder."""
    facts = prepared.facts(folder)
    return _build(folder / "tokenizer.json", facts.chat_template, {}, facts.bos, facts.eos, facts.pad)


def from_hugging_face(folder: str | Path) -> Tokenizer:
    """The tokenizer of a model folder: tokenizer.json, and its settings and chat template beside it.

    FileNotFoundError for a missing file; ValueError where settings cannot be read or lack a chat template or an end of
    turn.
    """
    folder = Path(folder)
    for name in (TOKENIZER, SETTINGS):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"no {name} in {folder}: a model folder holds it beside its weights")
    try:
        settings = json.loads((folder / SETTINGS).read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{folder / SETTINGS} cannot be read ({error}): copy it anew") from error
    template = settings.get("chat_template")
    if (folder / TEMPLATE).is_file():
        template = (folder / TEMPLATE).read_text()
    if not isinstance(template, str):
        raise ValueError(
            f"{folder} has no chat template, in {SETTINGS} or as {TEMPLATE}: take an instruction-tuned model"
        )
    spelling = {name: _content(settings.get(name)) for name in ("bos_token", "eos_token", "pad_token")}
    backend = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER))
    ids = {text: backend.token_to_id(text) for text in spelling.values()}
    eos = ids[spelling["eos_token"]]
    if eos is None:
        raise ValueError(f"{folder / SETTINGS} names no eos_token that {TOKENIZER} has: seen {spelling['eos_token']!r}")
    known = {text: eos if number is None else number for text, number in ids.items()}
    return _build(
        folder / TOKENIZER, template, spelling, known[spelling["bos_token"]], eos, known[spelling["pad_token"]]
    )


def _build(path: Path, template: str, spelling: dict[str, str], bos: int, eos: int, pad: int) -> Tokenizer:
    backend = tokenizers.Tokenizer.from_file(str(path))
    control = {token.content: number for number, token in backend.get_added_tokens_decoder().items() if token.special}
    backend.encode_special_tokens = True
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)  # as transformers renders it
    environment.globals.update(spelling, raise_exception=_refuse)
    return Tokenizer(backend, environment.from_string(template), control, bos, eos, pad)


def _content(token: str | dict | None) -> str:
    """The spelling of a token in the settings, where it is a string or a record; "": there is none."""
    return (token["content"] if isinstance(token, dict) else token) or ""


def _refuse(message: str) -> None:
    """What chat templates call where they cannot render a conversation."""
    raise ValueError(f"the chat template refuses the conversation: {message}")
