"""Builds the byte-level BPE tokenizer that a GGUF file describes."""

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from cudal1_jax.policy.gguf_file import Vocabulary


def build(vocabulary: Vocabulary) -> Tokenizer:
    """A tokenizer with the file's splitting rule. ValueError where that rule is not known.

    The rule "smollm" splits every digit off before byte-level BPE. Leaving that out changes ids wherever a space stands
    before a digit, while decoding still gives the text back, so that no round trip shows it.
    """
    if vocabulary.pre_tokenizer != "smollm":
        raise ValueError(f"the file's pre-tokenizer is {vocabulary.pre_tokenizer!r}; only 'smollm' is known")
    ids = {token: number for number, token in enumerate(vocabulary.tokens)}
    pairs = (merge.partition(" ") for merge in vocabulary.merges)
    merges = [(left, right) for left, _, right in pairs]
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in vocabulary.control])
    return tokenizer
