"""Builds the byte-level BPE tokenizer that a GGUF file describes."""

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from cudal1_jax.policy.gguf_file import Vocabulary

# contractions; a word with one sign before it; one digit; signs; ends of lines; spaces
QWEN2_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def build(vocabulary: Vocabulary) -> Tokenizer:
    """A tokenizer with the file's splitting rule. ValueError where that rule is not known.

    The rule "smollm" splits every digit off before byte-level BPE. Leaving that out changes ids wherever a space stands
    before a digit, while decoding still gives the text back, so that no round trip shows it.
    """
    ids = {token: number for number, token in enumerate(vocabulary.tokens)}
    pairs = (merge.partition(" ") for merge in vocabulary.merges)
    merges = [(left, right) for left, _, right in pairs]
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges))
    tokenizer.pre_tokenizer = _splitting(vocabulary.pre_tokenizer)
    if vocabulary.pre_tokenizer == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in vocabulary.control])
    return tokenizer


def _splitting(rule: str) -> pre_tokenizers.PreTokenizer:
    if rule == "smollm":
        digits, to_bytes = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel
        return pre_tokenizers.Sequence([digits, to_bytes(add_prefix_space=False)])
    if rule == "qwen2":
        pieces = pre_tokenizers.Split(Regex(QWEN2_PIECES), "isolated")
        return pre_tokenizers.Sequence([pieces, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    raise ValueError(f"the file's pre-tokenizer is {rule!r}; known are 'smollm' and 'qwen2'")
