//! The tokenizer: text to tokens and back, by the tables in the GGUF file.
//!
//! Special tokens are never found in text: whatever a file or a user writes stays text, and only
//! the template puts `<|im_end|>` where a message ends.

use crate::byte_level::token_bytes;
use crate::error::LocalError;
use crate::gguf::Gguf;
use crate::template::Template;
use llguidance::toktrie::{TokRxInfo, TokTrie, TokenId, TokenizerEnv};
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use tokenizers::Tokenizer;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;

/// The token types of GGUF that stand for text; the others are special (`llama_token_type`).
const TYPE_NORMAL: i64 = 1;
const TYPE_BYTE: i64 = 6;
/// Supported pre-tokenizers, for errors.
const PRE_TOKENIZERS: &str = "`qwen2`, `smollm`, `llama-bpe` and `gpt-2`";
/// Those that take a word that is a token as it is, whatever its merges would make of it.
const TAKES_WHOLE_WORDS: [&str; 2] = ["llama-bpe", "llama3"];
/// Splits of Qwen2: its `tokenizer.json`.
const SPLIT_QWEN2: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Splits of Llama 3: its `tokenizer.json`.
const SPLIT_LLAMA3: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// A model's tokens: a byte-level BPE vocabulary.
pub struct Vocabulary {
    tokenizer: Tokenizer,
    trie: TokTrie,
    specials: HashMap<String, TokenId>,
    end: TokenId,
    template: Template,
}

impl Vocabulary {
    /// Builds the vocabulary that a file holds.
    ///
    /// # Errors
    /// When tables are missing, or the tokenizer or the chat template is not supported.
    pub fn read(gguf: &Gguf) -> Result<Arc<Self>, LocalError> {
        let kind = gguf.text("tokenizer.ggml.model").unwrap_or("none");
        if kind != "gpt2" {
            return Err(unsupported("tokenizer", kind, "`gpt2`"));
        }
        let tokens = gguf
            .texts("tokenizer.ggml.tokens")
            .ok_or_else(|| gguf.missing("tokenizer.ggml.tokens"))?;
        let types = gguf
            .numbers("tokenizer.ggml.token_type")
            .filter(|types| types.len() == tokens.len())
            .ok_or_else(|| gguf.missing("tokenizer.ggml.token_type"))?;
        let end = end_token(gguf)?;
        let specials = special_tokens(&tokens, &types);
        // Each takes half of the time that loading weights takes.
        let (trie, tokenizer) = thread::scope(|scope| {
            let build = || build_trie(&tokens, &types, end);
            let trie = thread::Builder::new().spawn_scoped(scope, build);
            let tokenizer = build_tokenizer(gguf, &tokens);
            let trie = match trie {
                Ok(trie) => trie.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // The system gives no thread.
                Err(_) => build(),
            };
            (trie, tokenizer)
        });
        Ok(Arc::new(Self {
            template: Template::read(gguf, &specials)?,
            tokenizer: tokenizer?,
            trie,
            specials,
            end,
        }))
    }

    /// Returns how many tokens there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.trie.vocab_size()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the token that ends a reply.
    #[must_use]
    pub fn end(&self) -> TokenId {
        self.end
    }

    /// Returns the special token of that name, such as `<|im_start|>`.
    #[must_use]
    pub fn special(&self, name: &str) -> Option<TokenId> {
        self.specials.get(name).copied()
    }

    /// Returns how a conversation is written down for the model.
    pub(crate) fn template(&self) -> &Template {
        &self.template
    }

    /// Turns what a template writes into tokens: the names of special tokens are these.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub(crate) fn encode_form(&self, form: &str) -> Result<Vec<TokenId>, LocalError> {
        let mut tokens = Vec::new();
        let mut rest = form;
        while let Some((before, id, after)) = self.split_at_special(rest) {
            tokens.extend(self.encode(before)?);
            tokens.push(id);
            rest = after;
        }
        tokens.extend(self.encode(rest)?);
        Ok(tokens)
    }

    /// Finds the first name of a special token, the longest of those that begin there.
    fn split_at_special<'a>(&self, text: &'a str) -> Option<(&'a str, TokenId, &'a str)> {
        let found = self.specials.iter().filter(|(name, _)| !name.is_empty());
        let found = found.filter_map(|(name, id)| Some((text.find(name.as_str())?, name, *id)));
        let (at, name, id) = found.min_by_key(|(at, name, _)| (*at, usize::MAX - name.len()))?;
        Some((text.get(..at)?, id, text.get(at + name.len()..)?))
    }

    /// Turns text into tokens, none of them special.
    ///
    /// # Errors
    /// When the tokenizer fails, which it does on no known text.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>, LocalError> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let encoding = self
            .tokenizer
            .encode_fast(text, false)
            .map_err(|err| LocalError::Inference(format!("the tokenizer failed: {err}")))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Returns the bytes that tokens stand for; special tokens stand for none.
    #[must_use]
    pub fn decode(&self, tokens: &[TokenId]) -> Vec<u8> {
        self.trie.decode_ext(tokens, false)
    }
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie
            .tokenize_with_greedy_fallback(bytes, |text| self.encode(text).unwrap_or_default())
    }
}

fn unsupported(what: &'static str, found: &str, known: &'static str) -> LocalError {
    LocalError::Unsupported {
        what,
        found: found.to_owned(),
        known,
    }
}

fn end_token(gguf: &Gguf) -> Result<TokenId, LocalError> {
    let key = "tokenizer.ggml.eos_token_id";
    gguf.number(key)
        .and_then(|id| TokenId::try_from(id).ok())
        .ok_or_else(|| gguf.missing(key))
}

/// Special tokens get the mark by which the trie keeps them out of text.
fn build_trie(tokens: &[&str], types: &[i64], end: TokenId) -> TokTrie {
    let words: Vec<Vec<u8>> = tokens
        .iter()
        .zip(types)
        .map(|(token, kind)| match (is_text(*kind), token_bytes(token)) {
            (true, Some(bytes)) => bytes,
            _ => [&[TokTrie::SPECIAL_TOKEN_MARKER], token.as_bytes()].concat(),
        })
        .collect();
    let size = u32::try_from(words.len()).unwrap_or(u32::MAX);
    TokTrie::from(&TokRxInfo::new(size, end), &words)
}

fn is_text(kind: i64) -> bool {
    kind == TYPE_NORMAL || kind == TYPE_BYTE
}

fn special_tokens(tokens: &[&str], types: &[i64]) -> HashMap<String, TokenId> {
    (0..)
        .zip(tokens.iter().zip(types))
        .filter(|(_, (_, kind))| !is_text(**kind))
        .map(|(id, (token, _))| ((*token).to_owned(), id))
        .collect()
}

fn build_tokenizer(gguf: &Gguf, tokens: &[&str]) -> Result<Tokenizer, LocalError> {
    let merges = gguf
        .texts("tokenizer.ggml.merges")
        .ok_or_else(|| gguf.missing("tokenizer.ggml.merges"))?
        .into_iter()
        .filter_map(|merge| merge.split_once(' '))
        .map(|(left, right)| (left.to_owned(), right.to_owned()))
        .collect();
    let vocabulary = tokens
        .iter()
        .map(|token| (*token).to_owned())
        .zip(0..)
        .collect::<Vocab>();
    let kind = gguf.text("tokenizer.ggml.pre").unwrap_or("gpt-2");
    let bpe = BPE::builder()
        .vocab_and_merges(vocabulary, merges)
        .ignore_merges(TAKES_WHOLE_WORDS.contains(&kind))
        .build()
        .map_err(|err| gguf.format_error(format!("its merges are invalid: {err}")))?;
    let mut tokenizer = Tokenizer::new(bpe);
    tokenizer.with_pre_tokenizer(Some(splits(kind)?));
    Ok(tokenizer)
}

/// Returns how text is split before merging. No kind puts a space before the text, and none
/// normalizes: tokens must stand for the bytes that were given.
fn splits(kind: &str) -> Result<PreTokenizerWrapper, LocalError> {
    let bytes = |with_regex| ByteLevel::new(false, false, with_regex);
    let sequence = |first: PreTokenizerWrapper, then: ByteLevel| -> PreTokenizerWrapper {
        Sequence::new(vec![first, then.into()]).into()
    };
    Ok(match kind {
        "qwen2" => sequence(split_by(SPLIT_QWEN2)?, bytes(false)),
        "llama-bpe" | "llama3" => sequence(split_by(SPLIT_LLAMA3)?, bytes(false)),
        "smollm" => sequence(Digits::new(true).into(), bytes(true)),
        "gpt-2" | "default" => bytes(true).into(),
        other => return Err(unsupported("pre-tokenizer", other, PRE_TOKENIZERS)),
    })
}

fn split_by(regex: &str) -> Result<PreTokenizerWrapper, LocalError> {
    Split::new(
        SplitPattern::Regex(regex.to_owned()),
        SplitDelimiterBehavior::Isolated,
        false,
    )
    .map(Into::into)
    .map_err(|err| LocalError::Inference(format!("the tokenizer failed: {err}")))
}
