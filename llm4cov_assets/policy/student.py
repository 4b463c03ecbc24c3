"""The small student: a Qwen3-architecture model that answers in compact text, decoded under the grammar."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from llm4cov_assets.policy import tokens as t
from llm4cov_assets.policy.base import Generation, State
from llm4cov_assets.policy.checkpoint import Checkpoint, load_checkpoint, load_model, save_checkpoint, versions
from llm4cov_assets.policy.compact import ANSWER_TOKENS, FORMAT_VERSION, PROMPT_TOKENS, Prompt, build_prompt, focus
from llm4cov_assets.policy.generation_cache import GenerationCache, generation_id
from llm4cov_assets.policy.grammar import AnswerGrammar
from llm4cov_assets.policy.stimulus import Program, parse, render
from sim.design import DesignError
from sim.identity import content_id, sha256
from sim.simulation import Testbench

if TYPE_CHECKING:
    from transformers import Qwen3ForCausalLM

    from llm4cov_assets.profiles import Profile
    from sim.elaborate import Interface

CHUNK = 64
"""Answers decoded together. Requests are cut into chunks by position, so a resumed run decodes the same chunks."""


def base_student(profile: Profile, out_dir: Path) -> Checkpoint:
    """Seeded initial weights as a checkpoint folder `out_dir/<checkpoint_id>`; a finished one is returned as it is."""
    settings = {
        "hidden_size": profile.hidden_size,
        "intermediate_size": 3 * profile.hidden_size,
        "num_hidden_layers": profile.layers,
        "num_attention_heads": max(1, profile.hidden_size // 16),
        "num_key_value_heads": max(1, profile.hidden_size // 16),
        "head_dim": 16,
        "max_position_embeddings": max(1024, profile.max_length),
        # rows are short: slower rotations than this tell neighbours apart no better
        "rope_parameters": {"rope_type": "default", "rope_theta": 100.0},
    }
    checkpoint_id = content_id("checkpoint", "base", settings, profile.seed, t.VOCABULARY, versions())
    path = out_dir / checkpoint_id
    if found := load_checkpoint(path):
        return found

    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=len(t.VOCABULARY),
        tie_word_embeddings=True,
        pad_token_id=t.PAD_ID,
        eos_token_id=t.EOS_ID,
        bos_token_id=None,
        dtype="float32",
        **settings,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(profile.seed)
        model = Qwen3ForCausalLM(config)
    parameters = sum(p.numel() for p in model.parameters())
    made = Checkpoint(
        checkpoint_id, path, parameters=parameters, settings={**settings, "seed": profile.seed}, versions=versions()
    )
    save_checkpoint(made, model.save_pretrained)
    return made


MAX_SEGMENTS = 64
"""A testbench with more segments is not appended to; the answer is a file of its own."""

EMPTY = Program(())


@dataclass
class _Request:
    """One answer to make: its prompt, and what its testbench is made of. `error` says why there can be none."""

    state: State
    sample: int
    prompt: Prompt | None = None
    before: Program = EMPTY
    interface: Interface | None = None
    error: str = ""


class StudentPolicy:
    """A small student's checkpoint as a policy.

    `per_prompt` samples of a state share a prompt, the goals it names included, so that what tells them apart is how
    they answered. A draft is a program of its own; a repair is appended to the state's testbench when that is a
    rendered program, else it stands alone. The answer depends on state, seed and sample; which other answers are
    decoded beside it changes no more than the last bits of the probabilities.
    """

    engine = "transformers"

    def __init__(
        self,
        name: str,
        checkpoint_dir: Path,
        checkpoint_id: str,
        *,
        temperature: float = 0.7,
        top_p: float = 0.95,
        threads: int = 1,
        cache_dir: Path | None = None,
        per_prompt: int = 1,
    ) -> None:
        self.name = name
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_id: str | None = checkpoint_id
        self.temperature, self.top_p, self.threads = temperature, top_p, threads
        self._per_prompt = per_prompt
        self._sampling = {
            "temperature": temperature, "top_p": top_p, "per_prompt": per_prompt, "format": FORMAT_VERSION
        }  # fmt: skip
        self.policy_id = content_id("policy", "student", checkpoint_id, self._sampling)
        self._cache = GenerationCache(cache_dir) if cache_dir else None
        self._model: Qwen3ForCausalLM | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings by name, for people and for the table `policies`."""
        return {"checkpoint_id": self.checkpoint_id, **self._sampling}

    def propose(self, states: Sequence[State], n: int, seed: int) -> list[Generation]:
        """See `Policy.propose`."""
        requests = [self._request(state, sample, seed) for state in states for sample in range(n)]
        generations: list[Generation] = []
        for start in range(0, len(requests), CHUNK):
            generations += self._answer(requests[start : start + CHUNK], seed)
        if self._cache:
            self._cache.count()
        return generations

    def _request(self, state: State, sample: int, seed: int) -> _Request:
        from sim.elaborate import analyse
        from sim.goals import goals

        rng = Random(sha256(["prompt", seed, state.state_id, sample // self._per_prompt]))
        try:
            analysis = analyse(state.design)
        except DesignError as error:
            return _Request(state, sample, error=str(error))
        running = state.simulation if state.simulation and state.simulation.running else None
        before = parse(state.testbench.text) if running and state.testbench else None
        if before is None or len(before.segments) > MAX_SEGMENTS:
            before = EMPTY
        found = goals(analysis, running.uncovered if running else None)
        tried = {segment.goal for segment in before.segments}
        prompt = build_prompt(analysis.interface, focus(found, tried, rng), rng, repair=bool(before.segments))
        return _Request(state, sample, prompt, before, analysis.interface)

    def _answer(self, requests: Sequence[_Request], seed: int) -> list[Generation]:
        """Answers to one chunk. All of it is decoded unless every answer is cached."""
        keys = [self._key(r, seed) for r in requests]
        cached = [
            self._cache.get(key) if self._cache and r.prompt else None for r, key in zip(requests, keys, strict=True)
        ]
        open_rows = [row for row, r in enumerate(requests) if r.prompt]
        answers = dict(enumerate(cached))
        if any(cached[row] is None for row in open_rows):
            started = time.monotonic()
            prompts = [p for row in open_rows if (p := requests[row].prompt)]
            keyed = [
                int(sha256(["sample", seed, requests[row].state.state_id, requests[row].sample]), 16)
                for row in open_rows
            ]
            ids = self._decode(prompts, keyed)
            latency = (time.monotonic() - started) / len(open_rows)
            for row, answer in zip(open_rows, ids, strict=True):
                if cached[row] is None:
                    answers[row] = {"text": t.decode(answer), "tokens": len(answer), "latency_s": latency}
                    if self._cache:
                        self._cache.put(keys[row], answers[row])
        return [
            self._generation(request, answers[row], seed, cached[row] is not None)
            for row, request in enumerate(requests)
        ]

    def _key(self, request: _Request, seed: int) -> dict[str, object]:
        return {
            "policy_id": self.policy_id,
            "prompt": request.prompt.text if request.prompt else "",
            "state_id": request.state.state_id,
            "sample": request.sample,
            "seed": seed,
            "sampling": self._sampling,
        }

    def _generation(self, request: _Request, answer: dict[str, object] | None, seed: int, cached: bool) -> Generation:
        state, prompt = request.state, request.prompt
        text = prompt.text if prompt else ""
        common = (generation_id(self._key(request, seed)), self.policy_id, state.state_id, request.sample, seed, text)
        if prompt is None or request.interface is None or answer is None:
            return Generation(*common, answer="", testbench=None, finish_reason="error", error=request.error)
        rng = Random(sha256(["burst", seed, state.state_id, request.sample]))
        segments = prompt.segments(str(answer["text"]), rng)
        program = Program((*request.before.segments, *segments))
        return Generation(
            *common,
            answer=str(answer["text"]),
            testbench=Testbench(render(program, state.design, request.interface)),
            prompt_tokens=len(prompt.ids),
            completion_tokens=int(str(answer["tokens"])),
            latency_s=float(str(answer["latency_s"])),
            cached=cached,
        )

    def _decode(self, prompts: Sequence[Prompt], keys: Sequence[int]) -> list[list[int]]:
        import torch

        if self._model is None:
            self._model = load_model(self.checkpoint_dir)
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            return sample_answers(self._model, prompts, keys, self.temperature, self.top_p)
        finally:
            torch.set_num_threads(before)


def sample_answers(
    model: Qwen3ForCausalLM, prompts: Sequence[Prompt], keys: Sequence[int], temperature: float, top_p: float
) -> list[list[int]]:
    """Decode one answer per prompt (token ids, end token included) under the grammar.

    Row i draws from a generator of its own, keyed by `keys[i]`. Temperature 0 takes the likeliest token.
    """
    import torch
    from transformers.cache_utils import DynamicCache

    grammar = AnswerGrammar([p.shape for p in prompts], ANSWER_TOKENS)
    draws = np.stack([np.random.Generator(np.random.Philox(key=k % 2**128)).random(ANSWER_TOKENS) for k in keys])
    longest = max(len(p.ids) for p in prompts)
    ids = torch.full((len(prompts), longest), t.PAD_ID)
    attention = torch.zeros((len(prompts), longest), dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, longest - len(prompt.ids) :] = torch.tensor(prompt.ids)
        attention[row, longest - len(prompt.ids) :] = 1
    positions = (attention.cumsum(1) - 1).clamp(min=0)
    answers: list[list[int]] = [[] for _ in prompts]
    live = np.arange(len(prompts))  # rows of the batch that are still being decoded
    cache = DynamicCache(config=model.config)
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the argument's newer name is not in all supported versions
        for turn in range(ANSWER_TOKENS):
            out = model(
                input_ids=ids, attention_mask=attention, position_ids=positions, past_key_values=cache, use_cache=True,
                logits_to_keep=1,
            )  # fmt: skip
            chosen = choose(out.logits[:, -1].numpy(), grammar.mask(), draws[live, turn], temperature, top_p)
            grammar.advance(chosen)
            for row, token in zip(live, chosen, strict=True):
                if token != t.PAD_ID:
                    answers[row].append(int(token))
            done = grammar.done
            if done.all():
                break
            ids, positions = torch.from_numpy(chosen)[:, None], positions[:, -1:] + 1
            attention = torch.cat([attention, attention.new_ones((len(live), 1))], dim=1)
            # finished rows cost as much as others: leave them behind once they are a quarter of the batch
            if done.mean() >= 0.25:
                kept = np.flatnonzero(~done)
                index = torch.from_numpy(kept)
                cache.batch_select_indices(index)
                ids, positions, attention = ids[index], positions[index], attention[index]
                grammar.keep(kept)
                live = live[kept]
    return answers


def choose(
    logits: NDArray[np.float32], mask: NDArray[np.bool_], draws: NDArray[np.float64], temperature: float, top_p: float
) -> NDArray[np.int64]:
    """One token per row by inverse transform: `draws` in [0, 1), one per row; `mask` says what is allowed."""
    scores = np.where(mask, logits.astype(np.float64), -np.inf)
    if temperature <= 0:
        return scores.argmax(axis=1)
    weights = np.exp((scores - scores.max(axis=1, keepdims=True)) / temperature)
    order = np.argsort(-weights, axis=1, kind="stable")
    ranked = np.take_along_axis(weights, order, axis=1)
    below = np.cumsum(ranked, axis=1) - ranked
    nucleus = np.where(below < top_p * ranked.sum(axis=1, keepdims=True), ranked, 0.0)
    total = np.cumsum(nucleus, axis=1)
    rank = (total <= draws[:, None] * total[:, -1:]).sum(axis=1)
    return np.take_along_axis(order, rank[:, None], axis=1)[:, 0]


assert PROMPT_TOKENS + ANSWER_TOKENS <= 512, "a prompt and its answer fit into a training row"
