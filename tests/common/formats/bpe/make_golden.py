"""Makes the small tokenizers of this folder and the tokens that Hugging Face's `tokenizers` (pip install tokenizers) gives for some texts.

The test of common/formats/bpe_tokenizer.h compares Muster's with them. Run in this folder; what it writes is checked in.
"""

import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEXTS = [
    "",
    "Hello, world!",
    "It's we're they'LL I'd don't YOU'VE",
    "  two spaces,   three\tand a tab \n\n\nthree lines \r\n \r\n end   ",
    "1 22 333 4444 55555 3.14159 2026-12-01",
    "x = foo(bar[i], \"quoted\") != -1; // comment\n\treturn x;\n",
    "naïve café Ünïcödé cafe\u0301 ﬁ Å A\u030a",
    "中文没有空格。日本語もそうです。 한국어",
    "🙂 emoji 👩‍👩‍👧 and 𝕏",
    "a" * 70 + " " + "the " * 20 + "!" * 33,
    "end of one<|endoftext|>start of another <|user|>hi<|endoftext|><|endoftext|>",
    "<|endoftex <|endoftext|",
    "the training of a model on the tokens of the documents that the trainer reads",
    "\u00a0nbsp\u2003em space\u2028line separator\u0085next line\x0bvertical",
]


def train(tokenizer, specials):
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=specials, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    docs = pathlib.Path("../../../../docs")
    tokenizer.train([str(docs / "architecture.md"), str(docs / "checkpoint-format.md")], trainer)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def split(digits):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(CONTRACTIONS + digits + REST), "isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def main():
    end, user = "<|endoftext|>", "<|user|>"
    gpt2 = Tokenizer(models.BPE())
    gpt2.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    train(gpt2, [end])
    llama3 = Tokenizer(models.BPE(ignore_merges=True))
    llama3.pre_tokenizer = split(r"\p{N}{1,3}")
    train(llama3, [end])
    llama3.add_special_tokens([user])
    qwen2 = Tokenizer(models.BPE())
    qwen2.normalizer = normalizers.NFC()
    qwen2.pre_tokenizer = split(r"\p{N}")
    train(qwen2, [end])
    qwen2.add_tokens([AddedToken(user, normalized=False)])

    golden = {"texts": TEXTS}
    for name, tokenizer in (("gpt2", gpt2), ("llama3", llama3), ("qwen2", qwen2)):
        folder = pathlib.Path(name)
        folder.mkdir(exist_ok=True)
        if name == "gpt2":
            tokenizer.model.save(str(folder))
        else:
            tokenizer.save(str(folder / "tokenizer.json"))
            (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": end}) + "\n")
        golden[name] = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
    pathlib.Path("golden.json").write_text(json.dumps(golden, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
