"""Real trainers take what is exported as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import run

from warehouse.store import Store

CHAT = "{% for m in messages %}{{ '<' + m['role'] + '>' + m['content'] + '<eos>' }}{% endfor %}"


@pytest.mark.slow
def test_trl_trains_on_examples_and_on_preference_pairs(filled: Store, tmp_path: Path) -> None:
    from datasets import load_dataset
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

    letters = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    inner = Tokenizer(models.BPE(vocab=letters, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    inner.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>")
    tokenizer.chat_template = CHAT
    size = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    config = Qwen3Config(vocab_size=len(tokenizer), tie_word_embeddings=True, **size, **heads)
    student = str(tmp_path / "model")  # from files, because DPO opens it once more as the reference
    Qwen3ForCausalLM(config).save_pretrained(student)
    tokenizer.save_pretrained(student)
    common = {
        "output_dir": str(tmp_path / "trainer"), "max_steps": 1, "per_device_train_batch_size": 2, "use_cpu": True,
        "bf16": False, "gradient_checkpointing": False, "report_to": "none", "save_strategy": "no", "logging_steps": 1,
        "disable_tqdm": True,
    }  # fmt: skip
    run(filled, tmp_path / "sft", "sft", text="testbench")
    run(filled, tmp_path / "pairs", "preferences", text="testbench")
    for folder, trainer, arguments in (
        ("sft", SFTTrainer, SFTConfig(**common, max_length=2048)),
        ("pairs", DPOTrainer, DPOConfig(**common, max_length=2048, beta=0.1)),
    ):
        for shape in ("prompt_completion" if folder == "sft" else "prompt_chosen_rejected", "messages"):
            data = load_dataset(str(tmp_path / folder), shape, split="train", cache_dir=str(tmp_path / "cache"))
            made = trainer(model=student, args=arguments, train_dataset=data, processing_class=tokenizer)
            made.train()
            [loss] = [entry["loss"] for entry in made.state.log_history if "loss" in entry]
            assert loss > 0, (folder, shape)
            assert len(made.train_dataset) == len(data)
